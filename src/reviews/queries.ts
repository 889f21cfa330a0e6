import {
  and,
  asc,
  desc,
  eq,
  exists,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  isNull,
  ne,
  or,
  sql,
  type SQL,
  lt,
  lte,
} from "drizzle-orm";
import { QueryBuilder } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../../db/client.ts";
import { anyOf, idAfter, idBefore, instantAfter, nthId, someHas } from "../../db/conditions.ts";
import { readFitting } from "../../db/measure.ts";
import { stores, users, userStores } from "../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../db/schema/providers.ts";
import { reviewHistory, reviews, EVENT_JSON } from "../../db/schema/reviews.ts";
import { endingEarly, type Found, type Page } from "../http/list.ts";
import { fieldsShown } from "../http/shown.ts";
import type { Axis } from "../outbox/event.ts";
import { isConnectionEvent } from "../outbox/queries.ts";
import {
  changeKeyOf,
  type Colleague,
  type ColleagueQuery,
  type HistoryEntry,
  HistoryObject,
  type Review,
  type ReviewQuery,
  type StoreReviewSite,
  PartnerHistoryObject,
  type PartnerHistoryRow,
} from "./model.ts";

/** The reviews and stores to which a caller has access: a whole account, or some of its stores. */
export interface View {
  readonly accountId: number;
  readonly storeIds: readonly number[] | null;
}

const { reviewerEmail: _email, profanity: _words, ...REVIEW_COLUMNS } = getTableColumns(reviews);

/** Selects reviews together with the columns of their sites that `Review` contains. */
function selectReviews(db: DbOrTx) {
  return db
    .select({
      ...REVIEW_COLUMNS,
      reviewSiteId: storeReviewSites.reviewSiteId,
      sourcePlatform: reviewSites.slug,
    })
    .from(reviews)
    .innerJoin(storeReviewSites, eq(storeReviewSites.id, reviews.storeReviewSiteId))
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId));
}

export async function reviewById(db: DbOrTx, id: number): Promise<Review | undefined> {
  const [row] = await selectReviews(db).where(eq(reviews.id, id));
  return row;
}

/** The columns of a review that may be large. */
const LONG_TEXTS = [reviews.content, reviews.responseBody, reviews.flagReason];

/**
 * Maximum number of reviews that a text search reads for one page. It is limited, because no index covers the texts.
 */
const READ_FOR_TEXT = 5_000;

/**
 * Returns the reviews that match the filter, newest first. A text search stops after `READ_FOR_TEXT` reviews of the
 * account. The page ends early if its texts are large.
 */
export async function reviewsOf(
  db: DbOrTx,
  view: View,
  query: ReviewQuery,
  page: Page,
): Promise<Found<Review>> {
  const ofAccount = eq(reviews.accountId, view.accountId);
  const end =
    query.q === undefined
      ? undefined
      : await nthId(db, reviews, {
          nth: READ_FOR_TEXT,
          where: and(ofAccount, idBefore(reviews.id, page.after)),
        });
  const listed = selectReviews(db)
    .where(
      and(
        ofAccount,
        ...reviewConditions(view, query, page),
        end === undefined ? undefined : gte(reviews.id, end),
      ),
    )
    .orderBy(desc(reviews.id))
    .limit(page.limit + 1);
  const { rows, isCut } = await readFitting(db, listed, { large: LONG_TEXTS, order: sql`id desc` });
  return { rows, end: (isCut ? rows.at(-1)?.id : end)?.toString() };
}

function reviewConditions(view: View, query: ReviewQuery, page: Page): (SQL | undefined)[] {
  const { store_id, rate, source_platform, assigned_user_id, responded, flag_status } = query;
  const { external_review_id: externalId, q } = query;
  const { reviewer, content, responseBody } = reviews;
  return [
    q === undefined ? undefined : someHas([reviewer, content, responseBody], q),
    externalId === undefined ? undefined : ofExternalId(view, externalId),
    view.storeIds === null ? undefined : anyOf(reviews.storeId, view.storeIds),
    store_id === undefined ? undefined : eq(reviews.storeId, store_id),
    rate === undefined ? undefined : eq(reviews.rate, rate),
    source_platform === undefined ? undefined : eq(reviewSites.slug, source_platform),
    assigned_user_id === undefined ? undefined : eq(reviews.assignedUserId, assigned_user_id),
    responded === undefined ? undefined : respondedIs(responded === "true"),
    flag_status === undefined ? undefined : eq(reviews.flagStatus, flag_status),
    idBefore(reviews.id, page.after),
  ];
}

/**
 * Returns the reviews of a partner that changed at `since` or later, in the order of their last changes. The page ends
 * early if its texts are large.
 */
export async function partnerReviewsOf(
  db: DbOrTx,
  partnerId: number,
  since: Date | undefined,
  page: Page,
): Promise<Found<Review>> {
  const { updatedAt, id } = reviews;
  const listed = selectReviews(db)
    .where(
      and(
        eq(reviews.partnerId, partnerId),
        since && gte(updatedAt, since),
        instantAfter(updatedAt, id, page.after),
      ),
    )
    .orderBy(asc(updatedAt), asc(id))
    .limit(page.limit + 1);
  return endingEarly(
    await readFitting(db, listed, { large: LONG_TEXTS, order: sql`updated_at, id` }),
    changeKeyOf,
  );
}

/**
 * Matches the external id at each connection of the account. The condition lists the connections, because an external
 * id is unique only per connection, and the index begins with the connection.
 */
function ofExternalId(view: View, externalId: string): SQL | undefined {
  const sites = new QueryBuilder()
    .select({ id: storeReviewSites.id })
    .from(storeReviewSites)
    .where(eq(storeReviewSites.accountId, view.accountId));
  return and(eq(reviews.externalReviewId, externalId), inArray(reviews.storeReviewSiteId, sites));
}

function respondedIs(responded: boolean): SQL {
  return responded ? isNotNull(reviews.responseBody) : isNull(reviews.responseBody);
}

/** Maximum number of history rows that the API returns for one review: the newest ones. */
const HISTORY_ROWS = 10_000;

/**
 * Returns the history of a review, oldest first. The oldest rows are omitted if there are more than `HISTORY_ROWS`, or
 * if the rows are large.
 */
export async function historyOf(db: DbOrTx, reviewId: number): Promise<HistoryEntry[]> {
  const { id, actor, metadata } = reviewHistory;
  const listed = db
    .select(fieldsShown(HistoryObject, getTableColumns(reviewHistory)))
    .from(reviewHistory)
    .where(eq(reviewHistory.reviewId, reviewId))
    .orderBy(desc(id))
    .limit(HISTORY_ROWS);
  const large = [actor, metadata];
  return (await readFitting(db, listed, { large, order: sql`id desc` })).rows.toReversed();
}

/** Selects when an axis of a store's review site last connected or disconnected. */
function lastChange<A extends Axis>(db: DbOrTx, axis: A) {
  return db
    .select({ at: reviewHistory.occurredAt })
    .from(reviewHistory)
    .where(
      and(
        eq(reviewHistory.storeReviewSiteId, storeReviewSites.id),
        eq(reviewHistory.axis, axis),
        isConnectionEvent(reviewHistory.event),
      ),
    )
    .orderBy(desc(reviewHistory.id))
    .limit(1)
    .as(axis);
}

export function storeReviewSitesOf(db: DbOrTx, view: View, page: Page): Promise<StoreReviewSite[]> {
  const pull = lastChange(db, "pull");
  const post = lastChange(db, "post");
  return db
    .select({
      id: storeReviewSites.id,
      storeId: storeReviewSites.storeId,
      storeName: stores.name,
      reviewSiteId: storeReviewSites.reviewSiteId,
      provider: reviewSites.slug,
      name: reviewSites.name,
      pull: {
        connected: storeReviewSites.pullConnected,
        errorCode: storeReviewSites.pullErrorCode,
        since: pull.at,
      },
      post: {
        connected: storeReviewSites.postConnected,
        errorCode: storeReviewSites.postErrorCode,
        since: post.at,
      },
    })
    .from(storeReviewSites)
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
    .innerJoin(stores, eq(stores.id, storeReviewSites.storeId))
    .leftJoinLateral(pull, sql`true`)
    .leftJoinLateral(post, sql`true`)
    .where(
      and(
        eq(storeReviewSites.accountId, view.accountId),
        view.storeIds === null ? undefined : anyOf(storeReviewSites.storeId, view.storeIds),
        idAfter(storeReviewSites.id, page.after),
      ),
    )
    .orderBy(asc(storeReviewSites.id))
    .limit(page.limit + 1);
}

/**
 * Matches users with access to one of the stores: users of all roles, except location users who have none of these
 * stores.
 */
function sees(db: DbOrTx, storeIds: readonly number[]): SQL | undefined {
  const own = db
    .select()
    .from(userStores)
    .where(and(eq(userStores.userId, users.id), anyOf(userStores.storeId, storeIds)));
  return or(ne(users.role, "location_user"), exists(own));
}

/**
 * Returns whether a review may be assigned to this user: the user must be active, belong to the review's account, and
 * have access to the review's store.
 */
export async function maySee(
  db: DbOrTx,
  { accountId, storeId }: Pick<Review, "accountId" | "storeId">,
  userId: number,
): Promise<boolean> {
  const rows = await db
    .select({ id: users.id })
    .from(users)
    .where(
      and(
        eq(users.id, userId),
        eq(users.companyId, accountId),
        users.isActive,
        sees(db, [storeId]),
      ),
    );
  return rows.length > 0;
}

/**
 * Lists the active users of the account. A location user sees only users with access to one of the location user's own
 * stores.
 */
export async function colleaguesOf(
  db: DbOrTx,
  view: View,
  query: ColleagueQuery,
  page: Page,
): Promise<Colleague[]> {
  const seen = db
    .select({ id: users.id, email: users.email, name: users.name, role: users.role })
    .from(users)
    .where(
      and(
        eq(users.companyId, view.accountId),
        users.isActive,
        view.storeIds === null ? undefined : sees(db, view.storeIds),
        query.store_id === undefined ? undefined : seesOwn(db, query.store_id),
        idAfter(users.id, page.after),
      ),
    )
    .orderBy(asc(users.id))
    .limit(page.limit + 1)
    .as("seen");
  const rows = await db
    .select({
      id: seen.id,
      email: seen.email,
      name: seen.name,
      role: seen.role,
      storeId: userStores.storeId,
    })
    .from(seen)
    .leftJoin(userStores, and(eq(seen.role, "location_user"), eq(userStores.userId, seen.id)))
    .orderBy(asc(seen.id), asc(userStores.storeId));
  return [...Map.groupBy(rows, (row) => row.id).values()].flatMap(([user, ...others]) =>
    user === undefined ? [] : [colleague(user, others)],
  );
}

/** Matches users with access to the store, if the store belongs to their account. */
function seesOwn(db: DbOrTx, storeId: number): SQL | undefined {
  const own = db
    .select()
    .from(stores)
    .where(and(eq(stores.id, storeId), eq(stores.accountId, users.companyId)));
  return and(sees(db, [storeId]), exists(own));
}

type ColleagueRow = Omit<Colleague, "storeIds"> & { readonly storeId: number | null };

/**
 * Merges the rows of one user. A location user has one row per store; users with other roles have no stores assigned.
 */
function colleague({ storeId, ...user }: ColleagueRow, others: readonly ColleagueRow[]): Colleague {
  const storeIds = [storeId, ...others.map((row) => row.storeId)].filter((one) => one !== null);
  return { ...user, storeIds: user.role === "location_user" ? storeIds : null };
}

/** The rows of a partner's history for one page: those after a row, up to the id `through`, in the order of ids. */
interface HistorySlice {
  readonly partnerId: number;
  readonly after: string | undefined;
  readonly since: Date | undefined;
  readonly through: number;
  readonly limit: number;
}

/**
 * Maximum time in ms between the `recorded_at` of a history row and the moment at which the row draws its id, including
 * the difference between the clocks of the processes.
 */
const RECORDING_MS = 60_000;

/**
 * Returns the id of the last history row that was certainly recorded before `since`; undefined if there is none. All
 * rows that were recorded at `since` or later have larger ids.
 */
async function idBeforeInstant(
  db: DbOrTx,
  partnerId: number,
  since: Date,
): Promise<string | undefined> {
  const { id, recordedAt } = reviewHistory;
  // The subtraction is done in SQL, because the driver cannot send instants before the year 1.
  const before = sql`${sql.param(since, recordedAt)}::timestamptz - ${RECORDING_MS} * interval '1 millisecond'`;
  const [row] = await db
    .select({ id })
    .from(reviewHistory)
    .where(and(eq(reviewHistory.partnerId, partnerId), lt(recordedAt, before)))
    .orderBy(desc(recordedAt), desc(id))
    .limit(1);
  return row && String(row.id);
}

/**
 * Lists the rows of a slice. The list ends early if the rows are large. With `since`, it also contains rows that were
 * recorded up to `RECORDING_MS` before that instant, because an exact filter would need another index.
 */
export async function partnerHistory(
  db: DbOrTx,
  { partnerId, since, through, limit, ...slice }: HistorySlice,
): Promise<Found<PartnerHistoryRow>> {
  const { id } = reviewHistory;
  const after = slice.after ?? (since && (await idBeforeInstant(db, partnerId, since)));
  const listed = db
    .select(fieldsShown(PartnerHistoryObject, getTableColumns(reviewHistory)))
    .from(reviewHistory)
    .where(and(eq(reviewHistory.partnerId, partnerId), idAfter(id, after), lte(id, through)))
    .orderBy(asc(id))
    .limit(limit);
  const found = await readFitting(db, listed, { large: EVENT_JSON, order: sql`id` });
  return endingEarly(found, (row) => String(row.id));
}
