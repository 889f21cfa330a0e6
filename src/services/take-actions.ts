import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { examine, type ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import { type Clock, parseInstant } from "../lib/clock.ts";
import { keyOf } from "../lib/kind-key.ts";
import { type RecordedAction, siteStateOf } from "../outbox/event.ts";
import type { Waker } from "../outbox/schedule.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import { type Action, metadataOf, namesReview } from "./model.ts";
import * as queries from "./queries.ts";
import { sizeErrors } from "./sizes.ts";

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
    Object.assign(errors, sizeErrors(`actions.${index}`, action));
  }
  return errors;
}

/** Whether PostgreSQL can store a value of metadata: no NUL and no half of a surrogate pair. */
const isStorable = (value: unknown): boolean =>
  typeof value !== "string" || (value.isWellFormed() && !value.includes("\0"));

function subjectErrors(at: string, event: string, action: ValidParts<Action>): RuleErrors {
  const site = siteStateOf(event);
  const schema = metadataOf(event);
  const errors: Record<string, string | undefined> = {};
  const [wanted, other] = namesReview(event)
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

/** The rows by which actions are placed, by their ids; owners by the ids of their accounts. */
interface Places {
  readonly reviews: ReadonlyMap<number, Place>;
  readonly sites: ReadonlyMap<number, Place>;
  readonly users: ReadonlyMap<number, queries.Person>;
  readonly owners: ReadonlyMap<number, queries.Person>;
}

/** The tenant of a review or connection, and the slug of its review site. */
interface Place {
  readonly partnerId: number;
  readonly accountId: number;
  readonly slug: string;
}

/** Finds the tenant of each action by its review or connection, and the user who acts. */
export async function placeActions(db: DbOrTx, actions: readonly Action[]): Promise<Placed[]> {
  const reviewIds = actions.flatMap(({ review_id: id }) => id ?? []);
  const siteIds = actions.flatMap(({ store_review_site_id: id }) => id ?? []);
  const [reviews, sites, users] = await Promise.all([
    reviewIds.length === 0 ? [] : queries.placesOf(db, reviewIds),
    siteIds.length === 0 ? [] : queries.sitesOf(db, siteIds, "unlocked"),
    usersOf(db, actions),
  ]);
  const owners = await ownersOf(db, actions, [...reviews, ...sites]);
  const places = {
    reviews: new Map(reviews.map((one) => [one.id, one])),
    sites: new Map(sites.map((one) => [one.id, one])),
    users,
    owners,
  };
  return actions.map((action) => placeAction(action, places));
}

/** Reads the users whom actions name. */
export async function usersOf(
  db: DbOrTx,
  actions: readonly Action[],
): Promise<ReadonlyMap<number, queries.Person>> {
  const ids = actions
    .flatMap((action) => [...assigneeOf(action), action.actor.user_id ?? []].flat())
    .filter((id) => id <= MAX_ROW_ID);
  const users = ids.length === 0 ? [] : await queries.peopleOf(db, ids);
  return new Map(users.map((one) => [one.id, one]));
}

/** Reads the owners of the accounts on whose behalf staff acts. */
export async function ownersOf(
  db: DbOrTx,
  actions: readonly Action[],
  places: readonly Pick<Place, "accountId">[],
): Promise<ReadonlyMap<number, queries.Person>> {
  const isNeeded = places.length > 0 && actions.some(({ actor }) => actor.type === "staff");
  const accountIds = places.map(({ accountId }) => accountId);
  const owners = isNeeded ? await queries.ownersOf(db, accountIds) : [];
  return new Map(owners.map((one) => [one.companyId, one]));
}

/** Finds the tenant and the actor of an action in the rows that were read for it. */
export function placeAction(action: Action, { reviews, sites, users, owners }: Places): Placed {
  const { review_id: reviewId, store_review_site_id: siteId } = action;
  const place = reviewId === undefined ? sites.get(siteId ?? 0) : reviews.get(reviewId);
  const field = reviewId === undefined ? "store_review_site_id" : "review_id";
  if (place === undefined) return { errors: { [field]: "does not exist" } };
  const { partnerId, accountId, slug } = place;
  const isOwn = (id: number) => users.get(id)?.companyId === accountId;
  if (!assigneeOf(action).every(isOwn))
    return { errors: { "metadata.user_id": "is not a user of the account" } };
  const { type, user_id: userId = 0 } = action.actor;
  if (type === "system")
    return { action, partnerId, accountId, actor: { type, id: null, name: slug } };
  if (type === "user" && !isOwn(userId))
    return { errors: { "actor.user_id": "is not a user of the account" } };
  const user = type === "user" ? users.get(userId) : owners.get(accountId);
  if (user === undefined)
    return { errors: { "actor.type": "needs an active owner of the account" } };
  const actor = { type: "user", id: user.id, name: user.name } as const;
  return { action, partnerId, accountId, actor };
}

/** Returns the user to whom an action assigns a review; none for any other action. */
const assigneeOf = ({ event, metadata }: Action): number[] =>
  event === "review_assigned" ? [Number(metadata?.["user_id"])] : [];

/** The id that a service gave to an action. */
interface Given {
  readonly serviceId: number;
  readonly id: string;
}

const claimOf = ({ serviceId, id }: Given) => keyOf("action", serviceId, id);

/** Claims the ids of actions, and returns those that are new, each once. */
export async function claimFresh<G extends Given>(
  tx: Tx,
  given: readonly G[],
  now: Date,
): Promise<G[]> {
  const ids = given.map(({ serviceId, id }) => ({ serviceId, id }));
  const claimed = ids.length === 0 ? [] : await queries.claimActions(tx, ids, now);
  const fresh = new Set(claimed.map(claimOf));
  // Deleting the id leaves out its further occurrences.
  return given.filter((one) => fresh.delete(claimOf(one)));
}
