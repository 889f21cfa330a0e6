import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { recordAccessDenied } from "../auth/actions/access-denied.ts";
import { examine, type ValidParts } from "../http/fields.ts";
import type { Caller } from "../http/principal.ts";
import { type RuleErrors, throwFieldErrors, toFieldErrors } from "../http/rules.ts";
import { type Clock, parseInstant } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import { type RecordedAction, siteStateOf } from "../outbox/event.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
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

const keyOf = (serviceId: number, id: string) => `${serviceId} ${id}`;

/** Claims the ids of actions, and returns those with new ids, each once. */
export async function claimFresh<G extends Given>(
  tx: Tx,
  given: readonly G[],
  now: Date,
): Promise<G[]> {
  const claimed = given.length === 0 ? [] : await queries.claimActions(tx, claimsOf(given), now);
  const fresh = new Set(claimed.map((one) => keyOf(one.serviceId, one.id)));
  // Deleting the id leaves out its further occurrences.
  return given.filter(({ serviceId, placed }) => fresh.delete(keyOf(serviceId, placed.action.id)));
}
