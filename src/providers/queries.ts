import type { DbOrTx, Tx } from "../../db/client.ts";
import type { ReviewState, Site } from "./model.ts";

export async function sealedSecretOf(db: DbOrTx, slug: string): Promise<string | undefined> {
  const [row] = await db.sql<{ sealedSecret: string }[]>`
    select sealed_secret as "sealedSecret" from review_sites where slug = ${slug}`;
  return row?.sealedSecret;
}

type SiteRow = Omit<Site, "pull" | "post"> & {
  readonly pullConnected: boolean;
  readonly pullErrorCode: string | null;
  readonly postConnected: boolean;
  readonly postErrorCode: string | null;
};

/**
 * The provider's connections of these ids; those in `locked` are held until the commit, in the order of their ids.
 * `for no key update` lets others go on inserting reviews of the site.
 */
export async function sitesOf(
  tx: Tx,
  slug: string,
  { ids, locked }: { ids: readonly number[]; locked: readonly number[] },
): Promise<Site[]> {
  const { sql } = tx;
  const rows = await sql<SiteRow[]>`
    with held as materialized (
      select id, pull_connected, pull_error_code, post_connected, post_error_code
        from store_review_sites where id = any(${[...locked]}::int[])
       order by id for no key update
    )
    select l.id, l.review_site_id as "reviewSiteId", p.name, l.store_id as "storeId",
           l.account_id as "accountId", l.partner_id as "partnerId",
           coalesce(h.pull_connected, l.pull_connected) as "pullConnected",
           case when h.id is null then l.pull_error_code else h.pull_error_code end as "pullErrorCode",
           coalesce(h.post_connected, l.post_connected) as "postConnected",
           case when h.id is null then l.post_error_code else h.post_error_code end as "postErrorCode"
      from store_review_sites l
      join review_sites p on p.id = l.review_site_id
      left join held h on h.id = l.id
     where l.id = any(${[...ids]}::int[]) and p.slug = ${slug}`;
  return rows.map(({ pullConnected, pullErrorCode, postConnected, postErrorCode, ...site }) => ({
    ...site,
    pull: { connected: pullConnected, errorCode: pullErrorCode },
    post: { connected: postConnected, errorCode: postErrorCode },
  }));
}

/**
 * Claims event ids for ever and answers those that were free. A request with the same ids waits here until this one
 * has committed or given up; the order of the insert keeps two such requests from waiting for each other.
 */
export async function claimEventIds(
  tx: Tx,
  slug: string,
  ids: readonly string[],
  now: Date,
): Promise<Set<string>> {
  const rows = await tx.sql<{ id: string }[]>`
    insert into provider_events (review_site_id, id, received_at)
    select p.id, i.id, ${now}
      from review_sites p, json_array_elements_text(${JSON.stringify(ids)}::text::json) as i(id)
     where p.slug = ${slug}
     order by i.id collate "C"
    on conflict do nothing
    returning id`;
  return new Set(rows.map(({ id }) => id));
}

export type NewReview = Omit<ReviewState, "id" | "removedAt">;

/**
 * Inserts the reviews that do not exist yet and answers those. The unique index decides between two requests that
 * report the same review: the later one waits here, and meets a review that exists.
 */
export async function insertReviews(
  tx: Tx,
  reviews: readonly NewReview[],
  now: Date,
): Promise<{ id: number; siteId: number; externalReviewId: string }[]> {
  const input = reviews.map((one) => ({
    site_id: one.siteId,
    external_review_id: one.externalReviewId,
    rate: one.rate,
    reviewer: one.reviewer,
    reviewer_email: one.reviewerEmail,
    content: one.content,
    profanity: one.profanity,
    reviewed_at: one.reviewedAt,
  }));
  return tx.sql`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate,
                         reviewer, reviewer_email, content, profanity, reviewed_at, created_at, updated_at)
    select l.partner_id, l.account_id, l.store_id, l.id, i.external_review_id, i.rate,
           i.reviewer, i.reviewer_email, i.content, i.profanity, i.reviewed_at, ${now}, ${now}
      from json_to_recordset(${JSON.stringify(input)}::text::json) as i(
             site_id int, external_review_id text, rate int, reviewer text, reviewer_email text,
             content text, profanity text[], reviewed_at timestamptz)
      join store_review_sites l on l.id = i.site_id
     order by i.site_id, i.external_review_id collate "C"
    on conflict (store_review_site_id, external_review_id) do nothing
    returning id, store_review_site_id as "siteId", external_review_id as "externalReviewId"`;
}

/** Holds the reviews that exist of these, in the order of their ids, until the commit. */
export async function lockReviews(
  tx: Tx,
  keys: readonly Pick<ReviewState, "siteId" | "externalReviewId">[],
): Promise<ReviewState[]> {
  const input = keys.map((one) => ({ site_id: one.siteId, external: one.externalReviewId }));
  return tx.sql<ReviewState[]>`
    select r.id, r.store_review_site_id as "siteId", r.external_review_id as "externalReviewId", r.rate,
           r.reviewer, r.reviewer_email as "reviewerEmail", r.content, r.profanity,
           r.reviewed_at as "reviewedAt", r.removed_at as "removedAt"
      from json_to_recordset(${JSON.stringify(input)}::text::json) as i(site_id int, external text)
      join reviews r on r.store_review_site_id = i.site_id and r.external_review_id = i.external
     order by r.id
       for no key update of r`;
}

export async function updateReviews(
  tx: Tx,
  reviews: readonly ReviewState[],
  now: Date,
): Promise<void> {
  const input = reviews.map((one) => ({
    id: one.id,
    rate: one.rate,
    reviewer: one.reviewer,
    reviewer_email: one.reviewerEmail,
    content: one.content,
    profanity: one.profanity,
    reviewed_at: one.reviewedAt,
    removed_at: one.removedAt,
  }));
  await tx.sql`
    update reviews r
       set rate = i.rate, reviewer = i.reviewer, reviewer_email = i.reviewer_email, content = i.content,
           profanity = i.profanity, reviewed_at = i.reviewed_at, removed_at = i.removed_at, updated_at = ${now}
      from json_to_recordset(${JSON.stringify(input)}::text::json) as i(
             id int, rate int, reviewer text, reviewer_email text, content text, profanity text[],
             reviewed_at timestamptz, removed_at timestamptz)
     where r.id = i.id`;
}

export async function updateSites(tx: Tx, sites: readonly Site[]): Promise<void> {
  const input = sites.map(({ id, pull, post }) => ({
    id,
    pull_connected: pull.connected,
    pull_error_code: pull.errorCode,
    post_connected: post.connected,
    post_error_code: post.errorCode,
  }));
  await tx.sql`
    update store_review_sites l
       set pull_connected = i.pull_connected, pull_error_code = i.pull_error_code,
           post_connected = i.post_connected, post_error_code = i.post_error_code
      from json_to_recordset(${JSON.stringify(input)}::text::json) as i(
             id int, pull_connected boolean, pull_error_code text, post_connected boolean, post_error_code text)
     where l.id = i.id`;
}
