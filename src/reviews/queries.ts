import { eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { reviews } from "../../db/schema.ts";
import type { Page } from "../http/list.ts";
import type { ReviewChanges } from "./decide.ts";
import type {
  Colleague,
  ColleagueQuery,
  HistoryEntry,
  Review,
  ReviewQuery,
  StoreReviewSite,
} from "./model.ts";

/** Which reviews and stores a caller sees: an account's, or some of its stores'. */
export interface View {
  readonly accountId: number;
  readonly storeIds: readonly number[] | null;
}

const columns = (db: DbOrTx) => db.sql`
  r.id, r.partner_id as "partnerId", r.account_id as "accountId", r.store_id as "storeId",
  r.store_review_site_id as "storeReviewSiteId", l.review_site_id as "reviewSiteId", p.slug as "sourcePlatform",
  r.external_review_id as "externalReviewId", r.rate, r.reviewer, r.content, r.reviewed_at as "reviewedAt",
  r.created_at as "createdAt", r.updated_at as "updatedAt", r.removed_at as "removedAt",
  r.response_body as "responseBody", r.response_user_id as "responseUserId", r.responded_at as "respondedAt",
  r.flag_status as "flagStatus", r.flag_reason as "flagReason", r.assigned_user_id as "assignedUserId"`;

const source = (db: DbOrTx) => db.sql`
  reviews r
  join store_review_sites l on l.id = r.store_review_site_id
  join review_sites p on p.id = l.review_site_id`;

export async function reviewById(db: DbOrTx, id: number): Promise<Review | undefined> {
  const [row] = await db.sql<Review[]>`
    select ${columns(db)} from ${source(db)} where r.id = ${id}`;
  return row;
}

/** Holds the review until the commit, so that two actions on it are one after the other. */
export async function lockReview(tx: Tx, id: number): Promise<Review | undefined> {
  const [row] = await tx.sql<Review[]>`
    select ${columns(tx)} from ${source(tx)} where r.id = ${id} for no key update of r`;
  return row;
}

/** Newest first. */
export async function reviewsOf(
  db: DbOrTx,
  view: View,
  query: ReviewQuery,
  page: Page,
): Promise<Review[]> {
  const { sql } = db;
  const conditions = [
    view.storeIds === null ? sql`` : sql`and r.store_id = any(${[...view.storeIds]}::int[])`,
    query.store_id === undefined ? sql`` : sql`and r.store_id = ${query.store_id}`,
    query.rate === undefined ? sql`` : sql`and r.rate = ${query.rate}`,
    query.source_platform === undefined ? sql`` : sql`and p.slug = ${query.source_platform}`,
    query.assigned_user_id === undefined
      ? sql``
      : sql`and r.assigned_user_id = ${query.assigned_user_id}`,
    query.responded === undefined
      ? sql``
      : sql`and (r.response_body is not null) = ${query.responded === "true"}`,
    query.flag_status === undefined ? sql`` : sql`and r.flag_status = ${query.flag_status}`,
    page.after === undefined ? sql`` : sql`and r.id < ${Number(page.after)}::bigint`,
  ];
  return sql<Review[]>`
    select ${columns(db)} from ${source(db)}
     where r.account_id = ${view.accountId} ${conditions}
     order by r.id desc limit ${page.limit + 1}`;
}

/** Oldest first. */
export async function historyOf(db: DbOrTx, reviewId: number): Promise<HistoryEntry[]> {
  return db.sql<HistoryEntry[]>`
    select id, event_id as "eventId", event, actor, metadata, occurred_at as "occurredAt"
      from review_history where review_id = ${reviewId} order by id`;
}

export async function updateReview(
  tx: Tx,
  id: number,
  changes: ReviewChanges,
  now: Date,
): Promise<void> {
  await tx.orm
    .update(reviews)
    .set({ ...changes, updatedAt: now })
    .where(eq(reviews.id, id));
}

/** When an axis last changed sides. Literals, because a generic plan uses the partial index for nothing else. */
const lastChange = (db: DbOrTx, axis: "pull" | "post") => db.sql`
  (select h.occurred_at from review_history h
    where h.store_review_site_id = l.id and ${
      axis === "pull"
        ? db.sql`h.axis = 'pull' and h.event in ('review_pull_connected', 'review_pull_disconnected')`
        : db.sql`h.axis = 'post' and h.event in ('response_post_connected', 'response_post_disconnected')`
    }
    order by h.id desc limit 1)`;

export async function storeReviewSitesOf(
  db: DbOrTx,
  view: View,
  page: Page,
): Promise<StoreReviewSite[]> {
  const { sql } = db;
  const conditions = [
    view.storeIds === null ? sql`` : sql`and l.store_id = any(${[...view.storeIds]}::int[])`,
    page.after === undefined ? sql`` : sql`and l.id > ${Number(page.after)}::bigint`,
  ];
  return sql<StoreReviewSite[]>`
    select l.id, l.store_id as "storeId", s.name as "storeName", l.review_site_id as "reviewSiteId", p.slug, p.name,
           l.pull_connected as "pullConnected", l.pull_error_code as "pullErrorCode",
           ${lastChange(db, "pull")} as "pullSince",
           l.post_connected as "postConnected", l.post_error_code as "postErrorCode",
           ${lastChange(db, "post")} as "postSince"
      from store_review_sites l
      join review_sites p on p.id = l.review_site_id
      join stores s on s.id = l.store_id
     where l.account_id = ${view.accountId} ${conditions}
     order by l.id limit ${page.limit + 1}`;
}

/** Who of an account sees a store: everybody but the location users of others. */
const sees = (db: DbOrTx, storeIds: readonly number[]) => db.sql`
  (u.role <> 'location_user' or exists (
    select 1 from user_stores m where m.user_id = u.id and m.store_id = any(${[...storeIds]}::int[])))`;

/** Whether a review may be assigned to this user: one of its account, active, who sees its store. */
export async function maySee(
  db: DbOrTx,
  { accountId, storeId }: Pick<Review, "accountId" | "storeId">,
  userId: number,
): Promise<boolean> {
  const rows = await db.sql`
    select 1 from users u
     where u.id = ${userId} and u.company_id = ${accountId} and u.is_active and ${sees(db, [storeId])}`;
  return rows.length > 0;
}

/** The active users of the account; a location user meets those who see one of its own stores. */
export async function colleaguesOf(
  db: DbOrTx,
  view: View,
  query: ColleagueQuery,
  page: Page,
): Promise<Colleague[]> {
  const { sql } = db;
  const conditions = [
    view.storeIds === null ? sql`` : sql`and ${sees(db, view.storeIds)}`,
    query.store_id === undefined
      ? sql``
      : sql`and ${sees(db, [query.store_id])}
            and exists (select 1 from stores s where s.id = ${query.store_id} and s.account_id = u.company_id)`,
    page.after === undefined ? sql`` : sql`and u.id > ${Number(page.after)}::bigint`,
  ];
  return sql<Colleague[]>`
    select u.id, u.email, u.name, u.role,
           case when u.role = 'location_user'
             then array(select store_id from user_stores where user_id = u.id order by store_id) end as "storeIds"
      from users u
     where u.company_id = ${view.accountId} and u.is_active ${conditions}
     order by u.id limit ${page.limit + 1}`;
}
