import { ulid } from "ulid";

import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { recordAccessDenied } from "../auth/actions/access-denied.ts";
import { examine, type ValidParts } from "../http/fields.ts";
import type { Caller } from "../http/principal.ts";
import { type RuleErrors, throwFieldErrors, toFieldErrors } from "../http/rules.ts";
import { type Clock, parseInstant } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import { type Axis, type RecordedAction, siteStateOf } from "../outbox/event.ts";
import { holdSequences, recordActions } from "../outbox/queries.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { siteFacts } from "../providers/batch.ts";
import type { ReviewChanges } from "../reviews/decide.ts";
import { FLAG_STATUSES, type Review, reviewFacts } from "../reviews/model.ts";
import { lockReviews, updateReview } from "../reviews/queries/reviews.ts";
import { type Action, metadataOf, type Service } from "./model.ts";
import * as queries from "./queries.ts";

export interface TakingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly writerPool: WriterPool;
  readonly schedule: Waker;
}

/** The highest id of a row, as in `rowId`; metadata may name any integer. */
const MAX_ROW_ID = 2_147_483_647;
/** The most milliseconds by which the time of an action may be ahead of our clock. */
const MAX_AHEAD_MS = 5 * 60_000;

/** Checks each action by itself: its subject, its actor and its metadata must fit its event. */
export function actionErrors(
  { clock }: Pick<TakingDeps, "clock">,
  actions: readonly (ValidParts<Action> | undefined)[] = [],
): RuleErrors {
  const now = clock.now().getTime();
  const seen = new Set<string>();
  const errors: Record<string, string | undefined> = {};
  for (const [index, action] of actions.entries()) {
    if (action === undefined) continue;
    const at = `actions.${index}.`;
    const { id, event, actor, occurred_at: occurredAt } = action;
    if (id !== undefined && seen.has(id))
      errors[`${at}id`] = "is the id of an earlier action of the request";
    if (id !== undefined) seen.add(id);
    const time = parseInstant(occurredAt)?.getTime();
    if (time !== undefined && time > now + MAX_AHEAD_MS)
      errors[`${at}occurred_at`] = "lies more than 5 minutes ahead";
    if (time !== undefined && time < 0) errors[`${at}occurred_at`] = "lies before 1970";
    if (actor?.type !== undefined) {
      const needsUser = actor.type === "user";
      const hasUser = "user_id" in actor;
      if (needsUser !== hasUser)
        errors[`${at}actor.user_id`] = needsUser ? "is required of a user" : "is for a user only";
    }
    if (event !== undefined) Object.assign(errors, subjectErrors(at, event, action));
  }
  return errors;
}

/** Whether PostgreSQL can store a value of metadata: no NUL and no half of a surrogate pair. */
const isStorable = (value: unknown): boolean =>
  typeof value !== "string" || (value.isWellFormed() && !value.includes("\0"));

const POSTINGS = new Set(["response_post_succeeded", "response_post_failed"]);

function subjectErrors(at: string, event: string, action: ValidParts<Action>): RuleErrors {
  const site = siteStateOf(event);
  const schema = metadataOf(event);
  const errors: Record<string, string | undefined> = {};
  // A posting is about a review at its site, a connection about the site alone.
  const needsReview = schema !== undefined || POSTINGS.has(event);
  const [wanted, other] = needsReview
    ? (["review_id", "store_review_site_id"] as const)
    : (["store_review_site_id", "review_id"] as const);
  if (!(wanted in action)) errors[at + wanted] = `is required of ${event}`;
  if (other in action) errors[at + other] = `is not for ${event}`;
  const code = action.error_code ?? null;
  if (site?.isError === true && code === null)
    errors[`${at}error_code`] = `is required of ${event}`;
  if (site?.isError !== true && code !== null) errors[`${at}error_code`] = `is not for ${event}`;
  if (schema === undefined) {
    if (Object.keys(action.metadata ?? {}).length > 0)
      errors[`${at}metadata`] = `is not for ${event}`;
    return errors;
  }
  const { metadata = {} } = action;
  const examined = examine(schema, metadata);
  if ("fieldErrors" in examined) {
    for (const [field, [text]] of Object.entries(examined.fieldErrors))
      errors[`${at}metadata.${field}`] = text;
    return errors;
  }
  for (const [field, value] of Object.entries(metadata))
    if (![value].flat().every(isStorable))
      errors[`${at}metadata.${field}`] = "contains a character that cannot be stored";
  return errors;
}

/** An action with its tenant and its actor. */
export interface PlacedAction {
  readonly action: Action;
  readonly partnerId: number;
  readonly accountId: number;
  readonly actor: RecordedAction["actor"];
}

/** The result of the look-up of an action: its errors by field, if it names something that does not exist or fit. */
export type Placed = PlacedAction | { readonly errors: Readonly<Record<string, string>> };

/**
 * Takes the actions of a service, all or none (contract 9.7): one transaction claims their ids, changes reviews and
 * connections as the actions say, and writes history and outbox. Actions with known ids are left out.
 */
export async function takeActions(
  deps: TakingDeps,
  { principal, requestContext }: Caller,
  service: Service,
  actions: readonly Action[],
): Promise<{ readonly accepted: number; readonly duplicates: number }> {
  const found = await placeActions(deps.db, actions);
  throwErrors(found);
  const placed = found.flatMap((one) => ("action" in one ? [one] : []));
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  const foreign = partners.filter((one) => service.partnerIds?.includes(one) === false);
  if (foreign.length > 0) {
    const details = { reason: "foreign_partner", partner_ids: foreign };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  const now = deps.clock.now();
  const { recorded, accepted } = await deps.writerPool.transaction(partners, async (tx) => {
    const ids = placed.map(({ action }) => action.id);
    const fresh = await queries.claimActions(tx, service.id, ids, now);
    const taken = placed.filter(({ action }) => fresh.has(action.id));
    return { recorded: await writeActions(tx, taken, now), accepted: taken.length };
  });
  // Wakes the dispatcher after the commit, because an earlier wake could find the entries still invisible.
  await deps.schedule.wake(recorded);
  return { accepted, duplicates: actions.length - accepted };
}

function throwErrors(found: readonly Placed[]): void {
  const errors = found.flatMap((one, index) =>
    "errors" in one
      ? Object.entries(one.errors).map(([field, text]) => [`actions.${index}.${field}`, text])
      : [],
  );
  throwFieldErrors(toFieldErrors(Object.fromEntries(errors)));
}

/** Finds the tenant of each action by its review or connection, and the user who acts. */
export async function placeActions(db: DbOrTx, actions: readonly Action[]): Promise<Placed[]> {
  const reviewIds = actions.flatMap(({ review_id: id }) => id ?? []);
  const siteIds = actions.flatMap(({ store_review_site_id: id }) => id ?? []);
  const [reviews, sites] = [
    reviewIds.length === 0 ? [] : await queries.placesOf(db, reviewIds),
    siteIds.length === 0 ? [] : await queries.sitesOf(db, siteIds, false),
  ];
  const byReview = new Map(reviews.map((one) => [one.id, one]));
  const bySite = new Map(sites.map((one) => [one.id, one]));
  const people = await queries.actorsOf(db, {
    userIds: actions
      .flatMap((action) => [...assigneeOf(action), action.actor.user_id ?? []].flat())
      .filter((id) => id <= MAX_ROW_ID),
    accountIds: [...reviews, ...sites].map(({ accountId }) => accountId),
  });
  return actions.map((action) => {
    const { review_id: reviewId, store_review_site_id: siteId } = action;
    const place = reviewId === undefined ? bySite.get(siteId ?? 0) : byReview.get(reviewId);
    const field = reviewId === undefined ? "store_review_site_id" : "review_id";
    if (place === undefined) return { errors: { [field]: "does not exist" } };
    const { partnerId, accountId, slug } = place;
    const isOwn = (id: number) => people.users.get(id)?.companyId === accountId;
    if (!assigneeOf(action).every(isOwn))
      return { errors: { "metadata.user_id": "is not a user of the account" } };
    const { type, user_id: userId = 0 } = action.actor;
    if (type === "system")
      return { action, partnerId, accountId, actor: { type, id: null, name: slug } };
    if (type === "user" && !isOwn(userId))
      return { errors: { "actor.user_id": "is not a user of the account" } };
    const user = type === "user" ? people.users.get(userId) : people.owners.get(accountId);
    if (user === undefined)
      return { errors: { "actor.type": "needs an active owner of the account" } };
    const actor = { type: "user", id: user.id, name: user.name } as const;
    return { action, partnerId, accountId, actor };
  });
}

/** Returns the user to whom an action assigns a review; none for any other action. */
const assigneeOf = ({ event, metadata }: Action): number[] =>
  event === "review_assigned" ? [Number(metadata?.["user_id"])] : [];

/**
 * Applies actions in their order to the locked reviews and connections, and writes history and outbox. It must be the
 * end of its transaction (`recordActions`). Rows are locked before sequences, as by provider events, so that the two
 * cannot deadlock.
 */
export async function writeActions(tx: Tx, placed: readonly PlacedAction[], now: Date) {
  const draft = await lockSubjects(tx, placed);
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  if (partners.length > 1) await holdSequences(tx, partners, true);
  const made = placed.map((one) => apply(one, draft, now));
  for (const [id, changes] of draft.reviewChanges) await updateReview(tx, id, changes, now);
  for (const [id, changes] of draft.siteChanges) await queries.updateSite(tx, id, changes);
  return recordActions(tx, made, now);
}

/** The reviews and connections after the actions so far, and the columns that these actions have changed. */
interface Draft {
  readonly reviews: Map<number, Review>;
  readonly sites: Map<number, queries.SiteRow>;
  readonly reviewChanges: Map<number, ReviewChanges>;
  readonly siteChanges: Map<number, queries.SiteChanges>;
}

async function lockSubjects(tx: Tx, placed: readonly PlacedAction[]): Promise<Draft> {
  const idsOf = (field: "review_id" | "store_review_site_id") => [
    ...new Set(placed.flatMap(({ action }) => action[field] ?? [])),
  ];
  const [reviewIds, siteIds] = [idsOf("review_id"), idsOf("store_review_site_id")];
  const reviews = reviewIds.length === 0 ? [] : await lockReviews(tx, reviewIds);
  const ofReviews = [...new Set(reviews.map((one) => one.storeReviewSiteId))];
  const sites = [
    ...(ofReviews.length === 0 ? [] : await queries.sitesOf(tx, ofReviews, false)),
    // The copy of a locked row comes last, because it is the current one.
    ...(siteIds.length === 0 ? [] : await queries.sitesOf(tx, siteIds, true)),
  ];
  return {
    reviews: new Map(reviews.map((one) => [one.id, one])),
    sites: new Map(sites.map((one) => [one.id, one])),
    reviewChanges: new Map(),
    siteChanges: new Map(),
  };
}

function apply(
  { action, actor, ...tenant }: PlacedAction,
  draft: Draft,
  now: Date,
): RecordedAction {
  const occurredAt = parseInstant(action.occurred_at) ?? now;
  const review = draft.reviews.get(action.review_id ?? 0);
  const site = draft.sites.get(review?.storeReviewSiteId ?? action.store_review_site_id ?? 0);
  if (site === undefined) throw new Problem("not_found");
  const { metadata = {} } = action;
  const common = {
    ...tenant,
    eventId: ulid(now.getTime()),
    event: action.event,
    storeId: site.storeId,
    storeReviewSiteId: site.id,
    reviewId: review?.id ?? null,
    actor,
    metadata,
    occurredAt,
  };
  const state = siteStateOf(action.event);
  if (state !== undefined) {
    const { axis, isConnected } = state;
    const errorCode = action.error_code ?? null;
    const next =
      review === undefined ? connect(draft, site, { axis, isConnected, errorCode }) : site;
    return { ...common, about: { site: siteFacts(next, { axis, errorCode }) } };
  }
  if (review === undefined) throw new Problem("not_found");
  const changes = changesOf(action.event, metadata, { userId: actor.id, occurredAt });
  const changed = { ...review, ...changes };
  draft.reviews.set(review.id, changed);
  if (Object.keys(changes).length > 0)
    draft.reviewChanges.set(review.id, { ...draft.reviewChanges.get(review.id), ...changes });
  return { ...common, about: { review: reviewFacts(changed) } };
}

/** Returns the columns of a review that an action changes, as the action of an account would (contract 9.2). */
function changesOf(
  event: string,
  metadata: Readonly<Record<string, unknown>>,
  { userId, occurredAt }: { readonly userId: number | null; readonly occurredAt: Date },
): ReviewChanges {
  const text = (name: string) => String(metadata[name]);
  switch (event) {
    case "response_submitted":
    case "response_updated":
      return { responseBody: text("body"), responseUserId: userId, respondedAt: occurredAt };
    case "response_deleted":
      return { responseBody: null, responseUserId: null, respondedAt: null };
    case "review_flagged":
      return { flagStatus: "open", flagReason: text("reason") };
    case "flag_status_changed":
      return { flagStatus: FLAG_STATUSES.find((one) => one === metadata["to"]) ?? null };
    case "review_assigned":
      return { assignedUserId: Number(metadata["user_id"]) };
    default:
      return {};
  }
}

function connect(
  draft: Draft,
  site: queries.SiteRow,
  { axis, isConnected, errorCode }: { axis: Axis; isConnected: boolean; errorCode: string | null },
): queries.SiteRow {
  const changes =
    axis === "pull"
      ? { pullConnected: isConnected, pullErrorCode: errorCode }
      : { postConnected: isConnected, postErrorCode: errorCode };
  const next = { ...site, ...changes };
  draft.sites.set(site.id, next);
  draft.siteChanges.set(site.id, { ...draft.siteChanges.get(site.id), ...changes });
  return next;
}
