import { examine, type ValidParts } from "../http/fields.ts";
import type { RuleErrors } from "../http/rules.ts";
import { type Clock, parseInstant } from "../lib/clock.ts";
import { type RecordedAction, siteStateOf } from "../outbox/event.ts";
import type { Change, ServiceRequest } from "./change.ts";
import type { ReviewState, Site } from "./queries/look-up.ts";
import type { Person } from "./queries/people.ts";
import { type Action, metadataOf, namesReview } from "./service-model.ts";
import { sizeErrors } from "./sizes.ts";

/** Largest id of a row, as in `rowId`. Larger ids of users are not looked up: metadata may contain any integer. */
const MAX_ROW_ID = 2_147_483_647;
/** Time in ms by which the time of an action may be ahead of this service's clock. */
const MAX_AHEAD_MS = 5 * 60_000;

/** Validates each action separately: its subject, its actor and its metadata must fit its event. */
export function actionErrors(
  { clock }: { readonly clock: Clock },
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
      errors[`${at}occurred_at`] = "is more than 5 minutes in the future";
    if (time !== undefined && time < 0) errors[`${at}occurred_at`] = "is before 1970";
    if (actor?.type !== undefined) {
      const needsUser = actor.type === "user";
      const hasUser = "user_id" in actor;
      if (needsUser !== hasUser)
        errors[`${at}actor.user_id`] = needsUser
          ? 'is required for the actor "user"'
          : 'is only allowed for the actor "user"';
    }
    if (event !== undefined) Object.assign(errors, subjectErrors(at, event, action));
    Object.assign(errors, sizeErrors(`actions.${index}`, action));
  }
  return errors;
}

/**
 * Returns whether PostgreSQL can store a value of metadata: it must contain neither NUL nor half of a surrogate pair.
 */
const isStorable = (value: unknown): boolean =>
  typeof value !== "string" || (value.isWellFormed() && !value.includes("\0"));

function subjectErrors(at: string, event: string, action: ValidParts<Action>): RuleErrors {
  const site = siteStateOf(event);
  const schema = metadataOf(event);
  const errors: Record<string, string | undefined> = {};
  const [wanted, other] = namesReview(event)
    ? (["review_id", "store_review_site_id"] as const)
    : (["store_review_site_id", "review_id"] as const);
  if (!(wanted in action)) errors[at + wanted] = `is required for ${event}`;
  if (other in action) errors[at + other] = `is not allowed for ${event}`;
  const code = action.error_code ?? null;
  if (site?.isError === true && code === null)
    errors[`${at}error_code`] = `is required for ${event}`;
  if (site?.isError !== true && code !== null)
    errors[`${at}error_code`] = `is not allowed for ${event}`;
  if (schema === undefined) {
    if (Object.keys(action.metadata ?? {}).length > 0)
      errors[`${at}metadata`] = `is not allowed for ${event}`;
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

/** Builds the request of a service from its valid actions. */
export function serviceRequest(
  service: Pick<ServiceRequest, "serviceId" | "actsForPartners">,
  actions: readonly Action[],
  now: Date,
): ServiceRequest {
  let chars = 0;
  const changes = actions.map((action, index): Change => {
    const { id, event, review_id: reviewId, store_review_site_id: siteId = 0 } = action;
    const { metadata = {}, error_code: errorCode = null } = action;
    chars += JSON.stringify(metadata).length;
    return {
      index,
      id,
      subject: reviewId === undefined ? { siteId } : { reviewId },
      what: { kind: "event", event, metadata, errorCode, isAnnounced: false },
      occurredAt: parseInstant(action.occurred_at) ?? now,
    };
  });
  return { sender: "service", ...service, actions, changes, chars };
}

/** The rows to which actions refer, by their ids; the owners of accounts by the ids of the accounts. */
export interface ReferencedRows {
  readonly reviews: ReadonlyMap<number, ReviewState>;
  readonly sites: ReadonlyMap<number, Site>;
  readonly users: ReadonlyMap<number, Person>;
  readonly owners: ReadonlyMap<number, Person>;
}

/** The partner and the actor of an action, or its errors by field if a reference does not exist or does not fit. */
type ResolvedAction =
  | { readonly partnerId: number; readonly actor: RecordedAction["actor"] }
  | { readonly errors: Readonly<Record<string, string>> };

/** Returns the ids of the users that actions refer to: the acting users and the assignees. */
export function usersNamed(actions: readonly Action[]): number[] {
  return actions
    .flatMap((action) => [...assigneeOf(action), action.actor.user_id ?? []].flat())
    .filter((id) => id <= MAX_ROW_ID);
}

/** Resolves the partner and the actor of an action with the rows that were read for it. */
export function resolveAction(
  action: Action,
  { reviews, sites, users, owners }: ReferencedRows,
): ResolvedAction {
  const { review_id: reviewId, store_review_site_id: siteId } = action;
  const review = reviews.get(reviewId ?? 0);
  const site = sites.get(review?.storeReviewSiteId ?? siteId ?? 0);
  const field = reviewId === undefined ? "store_review_site_id" : "review_id";
  if (site === undefined) return { errors: { [field]: "does not exist" } };
  const { partnerId, accountId } = review ?? site;
  const isOwn = (id: number) => users.get(id)?.companyId === accountId;
  if (!assigneeOf(action).every(isOwn))
    return { errors: { "metadata.user_id": "is not a user of the account" } };
  const { type, user_id: userId = 0 } = action.actor;
  if (type === "system") return { partnerId, actor: { type, id: null, name: site.slug } };
  if (type === "user" && !isOwn(userId))
    return { errors: { "actor.user_id": "is not a user of the account" } };
  const user = type === "user" ? users.get(userId) : owners.get(accountId);
  if (user === undefined)
    return { errors: { "actor.type": "needs an active owner of the account" } };
  return { partnerId, actor: { type: "user", id: user.id, name: user.name } };
}

/** Returns the user to whom an action assigns a review; none for any other action. */
const assigneeOf = ({ event, metadata }: Action): number[] =>
  event === "review_assigned" ? [Number(metadata?.["user_id"])] : [];
