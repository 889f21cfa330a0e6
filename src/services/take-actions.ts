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
import { lockReviews, updateReviews } from "../reviews/queries/reviews.ts";
import { type Action, metadataOf, type Service } from "./model.ts";
import * as queries from "./queries.ts";

export interface TakingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly writerPool: WriterPool;
  readonly schedule: Waker;
}

/** The actions of one request that passed all checks. */
export interface TakingRequest {
  readonly serviceId: number;
  readonly placed: readonly PlacedAction[];
  readonly partners: readonly number[];
}

/** Looks up and takes the actions of requests that come together (src/services/take-together.ts). */
export interface Taker {
  readonly place: (actions: readonly Action[]) => Promise<readonly Placed[]>;
  /** Takes the actions of one request, and returns how many of them are new. */
  readonly take: (request: TakingRequest) => Promise<number>;
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
 * Takes the actions of a service, all or none (contract 9.7). Actions with known ids are left out. Throws `forbidden` if the
 * service does not act for one of the partners.
 */
export async function takeActions(
  deps: Pick<TakingDeps, "db" | "clock"> & { readonly taker: Taker },
  { principal, requestContext }: Caller,
  service: Service,
  actions: readonly Action[],
): Promise<{ readonly accepted: number; readonly duplicates: number }> {
  const found = await deps.taker.place(actions);
  throwErrors(found);
  const placed = found.flatMap((one) => ("action" in one ? [one] : []));
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  const foreign = partners.filter((one) => service.partnerIds?.includes(one) === false);
  if (foreign.length > 0) {
    const details = { reason: "foreign_partner", partner_ids: foreign };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  const accepted = await deps.taker.take({ serviceId: service.id, placed, partners });
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
    siteIds.length === 0 ? [] : await queries.sitesOf(db, siteIds, "unlocked"),
  ];
  const byReview = new Map(reviews.map((one) => [one.id, one]));
  const bySite = new Map(sites.map((one) => [one.id, one]));
  const people = await queries.actorsOf(db, {
    userIds: actions
      .flatMap((action) => [...assigneeOf(action), action.actor.user_id ?? []].flat())
      .filter((id) => id <= MAX_ROW_ID),
    // Only staff needs the owners of the accounts, on whose behalf it acts.
    accountIds: actions.some(({ actor }) => actor.type === "staff")
      ? [...reviews, ...sites].map(({ accountId }) => accountId)
      : [],
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

/** An action that a service gives. */
interface Given {
  readonly serviceId: number;
  readonly placed: PlacedAction;
}

/** Returns the ids of actions as they are claimed. */
export const claimsOf = (given: readonly Given[]) =>
  given.map(({ serviceId, placed }) => ({ serviceId, id: placed.action.id }));

/** Claims the ids of actions, and returns those with new ids, each once. */
export async function claimFresh<G extends Given>(
  tx: Tx,
  given: readonly G[],
  now: Date,
): Promise<G[]> {
  const keyOf = (serviceId: number, id: string) => `${serviceId} ${id}`;
  const claimed = given.length === 0 ? [] : await queries.claimActions(tx, claimsOf(given), now);
  const fresh = new Set(claimed.map((one) => keyOf(one.serviceId, one.id)));
  // Deleting the id leaves out its further occurrences.
  return given.filter(({ serviceId, placed }) => fresh.delete(keyOf(serviceId, placed.action.id)));
}

/**
 * Applies actions in their order to the locked reviews and connections, and writes history and outbox. It must be the
 * end of its transaction (`recordActions`). Rows are locked before sequences, as by provider events, so that the two
 * cannot deadlock.
 */
export async function writeActions(tx: Tx, placed: readonly PlacedAction[], now: Date) {
  const draft = await lockSubjects(tx, placed, {});
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  if (partners.length > 1) await holdSequences(tx, partners, true);
  return writeDraft(tx, draft, placed, now);
}

/** Writes actions on subjects that are locked, at the end of their transaction. */
export async function writeDraft(tx: Tx, draft: Draft, placed: readonly PlacedAction[], now: Date) {
  const made = placed.map((one) => apply(one, draft, now));
  for (const [id, changes] of draft.siteChanges) await queries.updateSite(tx, id, changes);
  const changed = [...draft.changedReviews].flatMap((id) => draft.reviews.get(id) ?? []);
  // Both statements are sent together.
  const [, recorded] = await Promise.all([
    changed.length > 0 && updateReviews(tx, changed, now),
    recordActions(tx, made, now),
  ]);
  return recorded;
}

/** The reviews and connections after the actions so far, and what these actions have changed. */
export interface Draft {
  readonly reviews: Map<number, Review>;
  readonly sites: Map<number, queries.SiteRow>;
  readonly changedReviews: Set<number>;
  readonly siteChanges: Map<number, queries.SiteChanges>;
}

/** Locks the reviews and connections of actions. With `skipLocked` it leaves out those that are locked already. */
export async function lockSubjects(
  tx: Tx,
  placed: readonly PlacedAction[],
  { skipLocked = false },
): Promise<Draft> {
  const idsOf = (field: "review_id" | "store_review_site_id") => [
    ...new Set(placed.flatMap(({ action }) => action[field] ?? [])),
  ];
  const [reviewIds, siteIds] = [idsOf("review_id"), idsOf("store_review_site_id")];
  // The statements are sent together, in this order.
  const [reviews, locked] = await Promise.all([
    reviewIds.length === 0 ? [] : lockReviews(tx, reviewIds, { skipLocked }),
    siteIds.length === 0
      ? []
      : queries.sitesOf(tx, siteIds, skipLocked ? "locked if free" : "locked"),
  ]);
  const posted = placed.flatMap(({ action }) =>
    action.review_id !== undefined && siteStateOf(action.event) !== undefined
      ? [action.review_id]
      : [],
  );
  const shown = reviews.filter(({ id }) => posted.includes(id)).map((one) => one.storeReviewSiteId);
  // The copy of a locked row comes last, because it is the current one.
  const sites = [
    ...(shown.length === 0 ? [] : await queries.sitesOf(tx, shown, "unlocked")),
    ...locked,
  ];
  return {
    reviews: new Map(reviews.map((one) => [one.id, one])),
    sites: new Map(sites.map((one) => [one.id, one])),
    changedReviews: new Set(),
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
  const subject = review ?? site;
  if (subject === undefined) throw new Problem("not_found");
  const { metadata = {} } = action;
  const common = {
    ...tenant,
    eventId: ulid(now.getTime()),
    event: action.event,
    storeId: subject.storeId,
    storeReviewSiteId: review?.storeReviewSiteId ?? subject.id,
    reviewId: review?.id ?? null,
    actor,
    metadata,
    occurredAt,
  };
  const state = siteStateOf(action.event);
  if (state !== undefined) {
    if (site === undefined) throw new Problem("not_found");
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
  if (Object.keys(changes).length > 0) draft.changedReviews.add(review.id);
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
