import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { Tx } from "../../../db/client.ts";
import { serviceActions } from "../../../db/schema/companies.ts";
import { providerEvents, reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { instant, list, nullable, rows, statement, type ValuesOf } from "../../../db/statement.ts";
import type { ReviewChanges } from "../../reviews/events.ts";
import { SITE, type Site } from "./look-up.ts";

/** The columns of a review that a report fills; the tenant is that of the connection. */
export const NEW_REVIEW = {
  id: reviews.id,
  storeReviewSiteId: reviews.storeReviewSiteId,
  externalReviewId: reviews.externalReviewId,
  rate: reviews.rate,
  reviewer: reviews.reviewer,
  reviewerEmail: reviews.reviewerEmail,
  content: reviews.content,
  profanity: reviews.profanity,
  reviewedAt: reviews.reviewedAt,
  removedAt: reviews.removedAt,
};

const insertion = statement({
  name: "intake.insertNew",
  // Raw SQL, because the statement runs with every batch and has two parameters that are tables, each inserted in one
  // order: 100 rows cost the builder 2.3 ms of CPU, and 0.16 ms as one parameter.
  params: {
    claims: rows({ slug: reviewSites.slug, id: providerEvents.id }),
    created: rows(NEW_REVIEW),
    now: instant,
  },
  text: ({ claims, created, now }) => sql`
    with claimed as (
      insert into provider_events (review_site_id, id, received_at)
      select p.id, claims.id, ${now}
        from ${claims} cross join lateral (select id from review_sites where slug = claims.slug offset 0) p
       order by p.id, claims.id collate "C"
    )
    insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, reviewer,
                         reviewer_email, content, profanity, reviewed_at, removed_at, created_at, updated_at)
    overriding system value
    select c.id, l.partner_id, l.account_id, l.store_id, l.id, c."externalReviewId", c.rate, c.reviewer,
           c."reviewerEmail", c.content, c.profanity, c."reviewedAt", c."removedAt", ${now}, ${now}
      from (select * from ${created}) c cross join lateral (
             select id, partner_id, account_id, store_id from store_review_sites where id = c."storeReviewSiteId" offset 0) l
     order by c."storeReviewSiteId", c."externalReviewId" collate "C"`,
});

/**
 * Claims event ids permanently and inserts reviews with the ids from `lookUpReports`. The statement fails, and the
 * transaction with it, if another transaction has claimed or inserted one of them since the look-up.
 */
export async function insertNew(tx: Tx, given: ValuesOf<typeof insertion.params>): Promise<void> {
  const { claims, created } = given;
  if (claims.length + created.length > 0) await tx.run(insertion, given);
}

/** The columns of a review that reports and actions change, except its text. */
const CHANGED = {
  rate: reviews.rate,
  reviewer: reviews.reviewer,
  reviewerEmail: reviews.reviewerEmail,
  profanity: reviews.profanity,
  reviewedAt: reviews.reviewedAt,
  removedAt: reviews.removedAt,
  responseBody: reviews.responseBody,
  responseUserId: reviews.responseUserId,
  respondedAt: reviews.respondedAt,
  flagStatus: reviews.flagStatus,
  flagReason: reviews.flagReason,
  assignedUserId: reviews.assignedUserId,
  updatedAt: reviews.updatedAt,
} satisfies Record<string, PgColumn> & Record<keyof ReviewChanges, PgColumn>;

const UPDATED = {
  ...CHANGED,
  id: reviews.id,
  /** The text; null if it is as it was, because a long one would be stored again. */
  content: nullable(reviews.content),
};

const update = statement({
  name: "intake.updateReviews",
  // Raw SQL, because the statement runs with every batch and updates rows from a parameter that is a table.
  params: { given: rows(UPDATED), ids: list(reviews.id) },
  text: ({ given, ids }) => sql`
    update reviews r
       set ${assigned(CHANGED)}, content = coalesce(given.content, r.content)
      from ${given}
     where r.id = given.id and r.id = any((select ${ids}::integer[])::integer[])`,
});

/** Assigns to columns the values that `given` has under their names in code. */
function assigned(columns: Readonly<Record<string, PgColumn>>): SQL {
  const each = Object.entries(columns).map(
    ([name, column]) => sql`${sql.identifier(column.name)} = given.${sql.identifier(name)}`,
  );
  return sql.join(each, sql`, `);
}

/** Updates the columns that changes write. `content` may be null, to leave the text as it is. */
export async function updateReviews(
  tx: Tx,
  given: readonly ValuesOf<typeof UPDATED>[],
): Promise<void> {
  if (given.length > 0) await tx.run(update, { given, ids: given.map(({ id }) => id) });
}

const axes = statement({
  name: "intake.updateSites",
  // Raw SQL, because the statement runs with every batch and updates rows from a parameter that is a table.
  params: {
    given: rows(SITE),
    ids: list(storeReviewSites.id),
  },
  text: ({ given, ids }) => sql`
    update store_review_sites l
       set pull_connected = given."pullConnected", pull_error_code = given."pullErrorCode",
           post_connected = given."postConnected", post_error_code = given."postErrorCode"
      from ${given}
     where l.id = given.id and l.id = any((select ${ids}::integer[])::integer[])`,
});

export async function updateSites(tx: Tx, given: readonly Site[]): Promise<void> {
  if (given.length > 0) await tx.run(axes, { given, ids: given.map(({ id }) => id) });
}

const actionClaims = statement({
  name: "intake.claimActions",
  // Raw SQL, because up to 500 rows are one parameter, inserted in one order, so that two requests with the same ids
  // cannot deadlock.
  params: {
    given: rows({ serviceId: serviceActions.serviceId, id: serviceActions.id }),
    now: instant,
  },
  text: ({ given, now }) => sql`
    insert into service_actions (service_id, id, taken_at)
    select given."serviceId", given.id, ${now} from ${given} order by given."serviceId", given.id`,
});

/**
 * Claims ids of actions permanently. The statement fails, and the transaction with it, if another transaction has claimed one
 * of them since they were looked up.
 */
export async function claimActions(
  tx: Tx,
  given: ValuesOf<typeof actionClaims.params>["given"],
  now: Date,
): Promise<void> {
  if (given.length > 0) await tx.run(actionClaims, { given, now });
}
