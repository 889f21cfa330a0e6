import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { parseInstant } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import { type RecordedAction, siteStateOf } from "../outbox/event.ts";
import { holdSequences, recordActions } from "../outbox/queries.ts";
import { siteFacts } from "../providers/record.ts";
import { decideAxis } from "../providers/decide.ts";
import { updateSites } from "../providers/queries/write.ts";
import { decideEvent } from "../reviews/events.ts";
import { type Review, reviewFacts } from "../reviews/model.ts";
import { lockReviews, updateReviews } from "../reviews/queries/reviews.ts";
import type { Action } from "./model.ts";
import * as queries from "./queries.ts";
import type { PlacedAction } from "./take-actions.ts";

/**
 * Applies actions in their order to the locked reviews and connections, and writes history and outbox. It must be the
 * end of its transaction (`recordActions`). Rows are locked before sequences, as by provider events, so that the two
 * cannot deadlock.
 */
export async function writeActions(tx: Tx, placed: readonly PlacedAction[], now: Date) {
  const draft = await lockSubjects(
    tx,
    placed.map(({ action }) => action),
    {},
  );
  const partners = [...new Set(placed.map(({ partnerId }) => partnerId))];
  if (partners.length > 1) await holdSequences(tx, partners, true);
  return writeDraft(tx, draft, placed, now);
}

/**
 * Writes actions on subjects that are locked, at the end of their transaction. An action that changes nothing is not
 * recorded. Returns the actions that changed nothing, and the wakes for the dispatcher once they are written.
 */
export function writeDraft(tx: Tx, draft: Draft, placed: readonly PlacedAction[], now: Date) {
  const unchanged = new Set<PlacedAction>();
  const made = placed.flatMap((one) => {
    const action = apply(one, draft, now);
    if (action === undefined) unchanged.add(one);
    return action ?? [];
  });
  const reviews = [...draft.changedReviews]
    .flatMap((id) => draft.reviews.get(id) ?? [])
    .map((review) => ({ ...review, updatedAt: now }));
  const sites = [...draft.changedSites].flatMap((id) => draft.sites.get(id) ?? []);
  // The statements are sent together.
  const written = Promise.all([
    sites.length > 0 && updateSites(tx, sites),
    updateReviews(tx, reviews),
    recordActions(tx, made, now),
  ]);
  return { unchanged, wakes: written.then(([, , wakes]) => wakes) };
}

/** The reviews and connections after the actions so far, and what these actions have changed. */
export interface Draft {
  readonly reviews: Map<number, Review>;
  readonly sites: Map<number, queries.SiteRow>;
  /** The connections that are locked. The others are only shown, with a posting at them. */
  readonly lockedSites: ReadonlySet<number>;
  readonly changedReviews: Set<number>;
  readonly changedSites: Set<number>;
}

/** Locks the reviews and connections of actions. With `skipLocked` it leaves out those that are locked already. */
export async function lockSubjects(
  tx: Tx,
  actions: readonly Action[],
  { skipLocked = false },
): Promise<Draft> {
  const idsOf = (field: "review_id" | "store_review_site_id") => [
    ...new Set(actions.flatMap((action) => action[field] ?? [])),
  ];
  const [reviewIds, siteIds] = [idsOf("review_id"), idsOf("store_review_site_id")];
  // The statements are sent together, in this order.
  const [reviews, locked] = await Promise.all([
    reviewIds.length === 0 ? [] : lockReviews(tx, reviewIds, { skipLocked }),
    siteIds.length === 0
      ? []
      : queries.sitesOf(tx, siteIds, skipLocked ? "locked if free" : "locked"),
  ]);
  const posted = actions.flatMap(({ event, review_id: id }) =>
    id !== undefined && siteStateOf(event) !== undefined ? [id] : [],
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
    lockedSites: new Set(locked.map(({ id }) => id)),
    changedReviews: new Set(),
    changedSites: new Set(),
  };
}

/** Applies an action to the draft. Returns undefined if the review or the axis is already as the action says. */
function apply(
  { action, actor, ...tenant }: PlacedAction,
  draft: Draft,
  now: Date,
): RecordedAction | undefined {
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
    const facts = (one: queries.SiteRow) => ({ site: siteFacts(one, { axis, errorCode }) });
    // A posting tells about a response, and leaves the axis as it is.
    if (review !== undefined) return { ...common, about: facts(site) };
    const { next, isEvent } = decideAxis(site, { axis, isConnected, errorCode });
    draft.sites.set(site.id, next);
    if (next !== site) draft.changedSites.add(site.id);
    return isEvent ? { ...common, about: facts(next) } : undefined;
  }
  if (review === undefined) throw new Problem("not_found");
  const changes = decideEvent(
    review,
    { name: action.event, metadata },
    { userId: actor.id, at: occurredAt },
  );
  if (changes === "unchanged") return undefined;
  const changed = { ...review, ...changes };
  draft.reviews.set(review.id, changed);
  if (Object.keys(changes).length > 0) draft.changedReviews.add(review.id);
  return { ...common, about: { review: reviewFacts(changed) } };
}
