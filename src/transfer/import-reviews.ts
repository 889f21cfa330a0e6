import { createHash } from "node:crypto";
import { encodeTime } from "ulid";

import { metadataOf, namesReview } from "../intake/service-model.ts";
import { sizeErrors } from "../intake/sizes.ts";
import { examine } from "../http/fields.ts";
import { parseInstant } from "../lib/clock.ts";
import { siteStateOf, type RecordedAction } from "../outbox/event.ts";
import { holdSequences, recordActions } from "../outbox/queries.ts";
import { siteFacts, withAxis } from "../intake/decide.ts";
import type { ProfanityFinder } from "../intake/profanity.ts";
import { reviewFacts } from "../reviews/model.ts";
import { updateReviews } from "../intake/queries/write.ts";
import { byKey, Directory, fault, type Fault, type Outcome, unknown } from "./directory.ts";
import type { LineOf } from "./format.ts";
import * as queries from "./queries/import.ts";
import type { ImportDeps } from "./import-master-data.ts";

/** The dependencies of the functions that import lines about reviews. */
export interface ImportReviewsDeps extends ImportDeps {
  readonly findProfanity: ProfanityFinder;
  /**
   * Collects the actions of an import with `--announce`, which are recorded at the end of the chunk; undefined without
   * that flag.
   */
  readonly announced: RecordedAction[] | undefined;
}

const distinctKeys = (keys: readonly (number | string | undefined)[]) => [...new Set(keys)];

export async function importReviews(deps: ImportReviewsDeps, lines: readonly LineOf<"review">[]) {
  const { tx, now } = deps;
  const connections = byKey(
    await queries.connectionsBy(tx, distinctKeys(lines.map((one) => one.connection_id))),
  );
  const assignees = byKey(
    await queries.usersBy(tx, distinctKeys(lines.map((one) => one.assigned_user_id))),
  );
  const places = lines.flatMap(({ connection_id: key, external_review_id: externalReviewId }) => {
    const storeReviewSiteId = connections.get(key)?.id;
    return storeReviewSiteId === undefined ? [] : [{ storeReviewSiteId, externalReviewId }];
  });
  const known = [
    ...(await queries.reviewsBy(
      tx,
      lines.flatMap((one) => [one.id, one.external_id]),
    )),
    ...(await queries.reviewsAtSites(tx, places)),
  ];
  const directory = new Directory(
    "review",
    known.map((one) => ({ ...one, ...uniqueReview(one.storeReviewSiteId, one.externalReviewId) })),
  );
  const values: Parameters<typeof queries.insertReviews>[1][number][] = [];
  const outcomes = lines.map((line): Outcome => {
    const site = connections.get(line.connection_id);
    if (site === undefined) return unknown("connection_id", "connection");
    const assignee =
      line.assigned_user_id === undefined ? null : assignees.get(line.assigned_user_id);
    if (assignee === undefined) return unknown("assigned_user_id", "user");
    const { id, external_id: externalId = null } = line;
    const identity = { id, externalId, ...uniqueReview(site.id, line.external_review_id) };
    return directory.settle(identity, () => {
      if (assignee !== null && assignee.companyId !== site.accountId)
        return fault("assigned_user_id", "must be a user of the account");
      const createdAt = parseInstant(line.created_at) ?? now;
      const content = line.content ?? "";
      values.push({
        ...(id !== undefined && { id }),
        partnerId: site.partnerId,
        accountId: site.accountId,
        storeId: site.storeId,
        storeReviewSiteId: site.id,
        externalReviewId: line.external_review_id,
        rate: line.rate,
        reviewer: line.reviewer ?? null,
        reviewerEmail: line.reviewer_email ?? null,
        content,
        profanity: deps.findProfanity(content),
        reviewedAt: parseInstant(line.reviewed_at) ?? now,
        removedAt: parseInstant(line.removed_at) ?? null,
        erasedAt: parseInstant(line.erased_at) ?? null,
        assignedUserId: assignee?.id ?? null,
        createdAt,
        updatedAt: parseInstant(line.updated_at) ?? createdAt,
        externalId,
        isImported: true,
      });
      return undefined;
    });
  });
  await queries.insertReviews(tx, values);
  return outcomes;
}

const uniqueReview = (connectionId: number, externalReviewId: string) => {
  const value = `${connectionId} ${externalReviewId}`;
  return { unique: { field: "external_review_id", value }, origin: value };
};

export async function importResponses({ tx }: ImportDeps, lines: readonly LineOf<"response">[]) {
  const authors = byKey(await queries.usersBy(tx, distinctKeys(lines.map((one) => one.user_id))));
  return changeReviews(tx, lines, (review, line) => {
    const author = line.user_id === undefined ? null : authors.get(line.user_id);
    if (author === undefined) return unknown("user_id", "user");
    if (review.responseBody !== null) return "present";
    return {
      responseBody: line.body,
      responseUserId: author?.id ?? null,
      respondedAt: parseInstant(line.responded_at) ?? null,
    };
  });
}

export function importFlags({ tx }: ImportDeps, lines: readonly LineOf<"flag">[]) {
  // A line without a reason gets an empty one, because a flag always has a reason. Reasons are unknown after an
  // erasure, for example.
  return changeReviews(tx, lines, (review, { status, reason = "" }) =>
    review.flagStatus === null ? { flagStatus: status, flagReason: reason } : "present",
  );
}

type ReviewChange = Partial<
  Pick<
    queries.ReviewRow,
    "responseBody" | "responseUserId" | "respondedAt" | "flagStatus" | "flagReason"
  >
>;

/**
 * Changes the reviews to which lines refer. `decide` returns the columns to write for a line, or the result of the line
 * if it changes nothing.
 */
async function changeReviews<L extends { readonly review_id: number | string }>(
  tx: ImportDeps["tx"],
  lines: readonly L[],
  decide: (review: queries.ReviewRow, line: L) => ReviewChange | "present" | Fault,
): Promise<Outcome[]> {
  const keys = distinctKeys(lines.map((one) => one.review_id));
  const reviews = byKey(await queries.lockReviewsBy(tx, keys));
  const changed = new Map<number, queries.ReviewRow>();
  const outcomes = lines.map((line): Outcome => {
    const found = reviews.get(line.review_id);
    if (found === undefined) return unknown("review_id", "review");
    const review = changed.get(found.id) ?? found;
    const change = decide(review, line);
    if (change === "present" || "field" in change) return change;
    changed.set(review.id, { ...review, ...change });
    return "created";
  });
  const written = [...changed.values()].map((one) => ({ ...one, content: null }));
  await updateReviews(tx, written);
  return outcomes;
}

// ------------------------------------------------------------------------------------------------ history

export function importNotes(deps: ImportReviewsDeps, lines: readonly LineOf<"note">[]) {
  return importHistory(
    deps,
    lines.map(({ user_id, body, created_at, ...line }) => ({
      ...line,
      event: "note_added",
      actor: { type: "user", user_id },
      metadata: { body },
      occurred_at: created_at,
    })),
  );
}

/**
 * Imports rows of the history. Without `announced`, the rows are only inserted, and cause no webhook, batch or alert.
 * With `announced`, they are added to it, and `announce` records them as actions that happen now.
 */
export async function importHistory(deps: ImportReviewsDeps, lines: readonly LineOf<"history">[]) {
  const { tx, now } = deps;
  const reviews = byKey(
    await queries.reviewsBy(tx, distinctKeys(lines.map((one) => one.review_id))),
  );
  const siteKeys = [
    ...lines.map((one) => one.connection_id),
    ...[...reviews.values()].map((one) => one.storeReviewSiteId),
  ];
  const sites = byKey(await queries.connectionsBy(tx, distinctKeys(siteKeys)));
  const people = byKey(
    await queries.usersBy(tx, distinctKeys(lines.map((one) => one.actor.user_id))),
  );
  const eventIds = lines.map(eventIdOf);
  const taken = new Set((await queries.eventIdsTaken(tx, eventIds)).map((one) => one.eventId));
  const actions: RecordedAction[] = [];
  const outcomes = lines.map((line, index): Outcome => {
    const eventId = eventIds[index] ?? "";
    const about = subjectOf(line, { reviews, sites });
    if ("field" in about) return about;
    const person = line.actor.user_id === undefined ? null : people.get(line.actor.user_id);
    if (person === undefined) return unknown("actor.user_id", "user");
    if ((person !== null) !== (line.actor.type === "user"))
      return fault(
        "actor.user_id",
        person === null
          ? 'is required for the actor "user"'
          : 'is only allowed for the actor "user"',
      );
    const refusal = metadataFault(line);
    if (refusal !== undefined) return refusal;
    if (taken.has(eventId)) return "present";
    taken.add(eventId);
    const { site, review } = about;
    const { name } = line.actor;
    actions.push({
      eventId,
      event: line.event,
      partnerId: site.partnerId,
      accountId: site.accountId,
      storeId: site.storeId,
      storeReviewSiteId: site.id,
      reviewId: review?.id ?? null,
      actor:
        person === null
          ? { type: "system", id: null, name: name ?? site.slug }
          : { type: "user", id: person.id, name: name ?? person.name },
      about: about.facts,
      metadata: line.metadata ?? {},
      occurredAt: parseInstant(line.occurred_at) ?? now,
    });
    return "created";
  });
  if (deps.announced !== undefined) deps.announced.push(...actions);
  else
    await queries.insertHistory(
      tx,
      actions.map(({ about, ...action }) => ({
        ...action,
        axis: "site" in about ? about.site.axis : null,
        review: "review" in about ? about.review : null,
        site: "site" in about ? about.site : null,
        recordedAt: now,
        isImported: true,
      })),
    );
  return outcomes;
}

/** Records the announced actions of a chunk. This must be the last statement of its transaction (`recordActions`). */
export async function announce({ tx, announced = [], now }: ImportReviewsDeps): Promise<void> {
  if (announced.length === 0) return;
  await holdSequences(tx, [...new Set(announced.map(({ partnerId }) => partnerId))], true);
  await recordActions(tx, announced, now);
}

interface Subjects {
  readonly reviews: ReadonlyMap<number | string, queries.ReviewRow>;
  readonly sites: ReadonlyMap<number | string, queries.Connection>;
}

/**
 * Finds the review or the connection that a line is about. Returns it with the data about it that the body of an event
 * contains, or a fault.
 */
function subjectOf(line: LineOf<"history">, { reviews, sites }: Subjects) {
  const { review_id: reviewId, connection_id: connectionId, error_code: errorCode = null } = line;
  const state = siteStateOf(line.event);
  const needsReview = namesReview(line.event);
  if (needsReview !== (reviewId !== undefined))
    return fault(
      "review_id",
      needsReview ? `is required for ${line.event}` : `is not allowed for ${line.event}`,
    );
  if (needsReview === (connectionId !== undefined))
    return fault(
      "connection_id",
      needsReview ? `is not allowed for ${line.event}` : `is required for ${line.event}`,
    );
  if ((state?.isError ?? false) !== (errorCode !== null))
    return fault(
      "error_code",
      errorCode === null ? `is required for ${line.event}` : `is not allowed for ${line.event}`,
    );
  const review = reviewId === undefined ? undefined : reviews.get(reviewId);
  if (needsReview && review === undefined) return unknown("review_id", "review");
  const site = sites.get(review?.storeReviewSiteId ?? connectionId ?? 0);
  if (site === undefined) return unknown("connection_id", "connection");
  if (state !== undefined) {
    const { axis, isConnected } = state;
    const then = withAxis(site, { axis, isConnected, errorCode });
    return { site, review, facts: { site: siteFacts(then, { axis, errorCode }) } };
  }
  const { rate = review?.rate ?? 1, reviewer = review?.reviewer ?? null } = line;
  const facts = {
    ...site,
    ...review,
    id: review?.id ?? 0,
    externalReviewId: review?.externalReviewId ?? "",
    sourcePlatform: site.slug,
    rate,
    reviewer,
  };
  return { site, review, facts: { review: reviewFacts(facts) } };
}

function metadataFault({ event, metadata = {} }: LineOf<"history">): Fault | undefined {
  const schema = metadataOf(event);
  if (schema === undefined)
    return Object.keys(metadata).length > 0
      ? fault("metadata", `is not allowed for ${event}`)
      : undefined;
  const [tooLong] = Object.entries(sizeErrors("metadata", metadata));
  if (tooLong !== undefined) return fault(tooLong[0], tooLong[1] ?? "");
  const examined = examine(schema, metadata);
  if ("value" in examined) return undefined;
  const [field = "", [text = ""] = []] = Object.entries(examined.fieldErrors)[0] ?? [];
  return fault(`metadata.${field}`, text);
}

const BASE_32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RANDOM_CHARS = 16;

/**
 * Returns the event id of a line. If the line has none, derives a ULID from its time and a digest of its external id or
 * content. The ULID is the same in every run, so that a second import finds the row of the first.
 */
function eventIdOf(line: LineOf<"history">): string {
  if (line.event_id !== undefined) return line.event_id;
  const key =
    line.external_id === undefined ? JSON.stringify(line) : `external:${line.external_id}`;
  const digest = createHash("sha256").update(key).digest();
  const random = Array.from(digest.subarray(0, RANDOM_CHARS), (byte) => BASE_32.charAt(byte % 32));
  const ms = parseInstant(line.occurred_at)?.getTime() ?? 0;
  return encodeTime(Math.max(0, ms), 10) + random.join("");
}
