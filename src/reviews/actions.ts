import type { Db } from "../../db/client.ts";
import { recordAccessDenied } from "../auth/access/access-denied.ts";
import type { Caller, Principal } from "../http/principal.ts";
import { type Found, type Page } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type {
  Colleague,
  ColleagueQuery,
  HistoryEntry,
  Review,
  ReviewQuery,
  StoreReviewSite,
} from "./model.ts";
import * as queries from "./queries.ts";

export interface ReviewDeps {
  readonly db: Db;
  readonly clock: Clock;
}

const MAX_REVIEW_ID = 2_147_483_647;

/**
 * Loads the review whose id is in the path, for a caller with access to it. Throws 404 if the review does not exist.
 * Throws 403 and audits AUTHZ_DENIED if it belongs to another account, or to a store to which the caller has no access
 * (contract 2.6).
 */
export function findReview(deps: ReviewDeps, caller: Caller, id: string): Promise<Review> {
  const { accountId, storeIds } = caller.principal;
  return findSeen(deps, caller, id, (review) => {
    const seesStore = storeIds === null || storeIds.includes(review.storeId);
    return review.accountId === accountId && seesStore;
  });
}

/** Loads the review whose id is in the path, for a user of its partner. Throws and audits like `findReview`. */
export function findPartnerReview(deps: ReviewDeps, caller: Caller, id: string): Promise<Review> {
  return findSeen(deps, caller, id, ({ partnerId }) => partnerId === caller.principal.partnerId);
}

async function findSeen(
  deps: ReviewDeps,
  { principal, requestContext }: Caller,
  id: string,
  isSeen: (review: Review) => boolean,
): Promise<Review> {
  const wellFormed = isRowId(id) && Number(id) <= MAX_REVIEW_ID;
  const review = wellFormed ? await queries.reviewById(deps.db, Number(id)) : undefined;
  if (review === undefined) throw new Problem("not_found");
  if (isSeen(review)) return review;
  const details = { review_id: review.id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

export function listReviews(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  query: ReviewQuery,
  page: Page,
): Promise<Found<Review>> {
  return queries.reviewsOf(db, viewOf(principal), query, page);
}

export function reviewHistory(
  { db }: Pick<ReviewDeps, "db">,
  { id }: Pick<Review, "id">,
): Promise<HistoryEntry[]> {
  return queries.historyOf(db, id);
}

export function listStoreReviewSites(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  page: Page,
): Promise<StoreReviewSite[]> {
  return queries.storeReviewSitesOf(db, viewOf(principal), page);
}

/** Lists the users to whom reviews may be assigned (`GET /account/users`). */
export function listColleagues(
  { db }: Pick<ReviewDeps, "db">,
  principal: Principal,
  query: ColleagueQuery,
  page: Page,
): Promise<Colleague[]> {
  return queries.colleaguesOf(db, viewOf(principal), query, page);
}

/**
 * Returns the principal's view of its account. Throws if there is no account: the type allows that, although the access
 * rule admits only users of an account.
 */
function viewOf({ accountId, storeIds }: Principal): queries.View {
  if (accountId === null) throw new Problem("forbidden");
  return { accountId, storeIds };
}
