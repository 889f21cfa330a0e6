// The statements that delete a company, each with a bounded number of rows (contract 10.8). The callers run them in the
// transaction that stores the progress.

import { and, asc, eq, gt, inArray, or, sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import { anyOf, isAttemptOfAny } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { alertSettings, incidents, mails } from "../../../db/schema/alerts.ts";
import { attemptStats, backlogStats, deliveryAttempts } from "../../../db/schema/attempts.ts";
import {
  auditLog,
  companies,
  inbox,
  services,
  stores,
  users,
  userStores,
} from "../../../db/schema/companies.ts";
import { companyDeletions } from "../../../db/schema/erasures.ts";
import {
  batchEntries,
  outbox,
  outboxOffsets,
  outboxSequences,
  outboxSkips,
} from "../../../db/schema/outbox.ts";
import { storeReviewSites } from "../../../db/schema/providers.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import { ssoConnections } from "../../../db/schema/sign-in.ts";
import {
  authenticationEvents,
  oauthClients,
  portalSettings,
  tokens,
} from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { list, statement, value } from "../../../db/statement.ts";
import { countErasure, keptDetails } from "./erase.ts";

/** The most rows that one statement deletes. */
export const DELETED_ROWS = 500;
/**
 * The most rows that one statement deletes from a table to which many other tables refer. It is small, because
 * PostgreSQL checks each of these foreign keys for every deleted row.
 */
const FEW_ROWS = 20;

/** A company that is being deleted. `partnerId` is the partner of an account; null for a partner. */
export interface Leaving {
  readonly id: number;
  readonly partnerId: number | null;
}

/**
 * Deletes at most `limit` of the rows that match `where`, and returns the number of deleted rows. If it is smaller than
 * `limit`, no matching rows are left.
 */
async function deleteSome(
  tx: Tx,
  key: PgColumn,
  where: SQL | undefined,
  limit = DELETED_ROWS,
): Promise<number> {
  const some = tx.select({ key }).from(key.table).where(where).orderBy(key).limit(limit);
  const isSome = sql`${key} = any(array${some})`;
  return (await tx.delete(key.table).where(and(where, isSome))).count;
}

/** Returns the first account of a partner, which is deleted next; undefined if none is left. */
export async function firstAccount(db: DbOrTx, partnerId: number): Promise<number | undefined> {
  const [row] = await db
    .select({ id: companies.id })
    .from(companies)
    .where(eq(companies.partnerId, partnerId))
    .orderBy(asc(companies.id))
    .limit(1);
  return row?.id;
}

export async function leavingCompany(db: DbOrTx, wanted: number) {
  const { id, type, partnerId } = companies;
  const [row] = await db.select({ id, type, partnerId }).from(companies).where(eq(id, wanted));
  return row;
}

// ------------------------------------------------------------------------------------------------ an account's events

/**
 * Reads the next `DELETED_ROWS` actions of the inbox after a position, and deletes those about reviews and connections
 * of an account.
 */
export async function deleteInboxOf(tx: Tx, { id }: Leaving, after: number) {
  const { position, action } = inbox;
  const looked = await tx
    .select({ position })
    .from(inbox)
    .where(gt(position, after))
    .orderBy(asc(position))
    .limit(DELETED_ROWS);
  const named = (field: string) => {
    const text = sql`${action} ->> ${sql.raw(`'${field}'`)}`;
    return sql`case when ${text} ~ '^[1-9][0-9]{0,8}$' then (${text})::integer end`;
  };
  const positions = looked.map((row) => row.position);
  const { count } = await tx.delete(inbox).where(
    and(
      anyOf(position, positions),
      or(
        sql`exists (select from reviews where id = ${named("review_id")} and account_id = ${id})`,
        sql`exists (select from store_review_sites
                     where id = ${named("store_review_site_id")} and account_id = ${id})`,
      ),
    ),
  );
  return { rows: count, next: looked.length < DELETED_ROWS ? undefined : positions.at(-1) };
}

/**
 * Deletes connections of an account. Without a connection, the provider cannot report events, and nobody can act on the
 * reviews.
 */
export function deleteConnections(tx: Tx, { id }: Leaving): Promise<number> {
  return deleteSome(tx, storeReviewSites.id, eq(storeReviewSites.accountId, id));
}

/**
 * Lists the open transactions that may have read a connection before its deletion and may still write about it. They
 * are recognised by table locks on `reviews` or `store_review_sites` of modes that a dump does not take. The caller
 * waits for these transactions instead of locking the tables, so that no request is delayed.
 */
export function presentWriters(db: DbOrTx) {
  return db
    .selectDistinct({
      id: sql`l.virtualtransaction`.mapWith(String),
      session: sql`concat_ws(' ', a.application_name, l.pid)`.mapWith(String),
    })
    .from(sql`pg_locks l left join pg_stat_activity a on a.pid = l.pid`)
    .where(
      sql`l.locktype = 'relation' and l.mode in ('RowShareLock', 'RowExclusiveLock') and l.granted
          and l.database = (select oid from pg_database where datname = current_database())
          and l.relation in ('reviews'::regclass, 'store_review_sites'::regclass)
          and l.pid is distinct from pg_backend_pid()`,
    );
}

/** Returns the first subscription of a partner after an id, deleted ones included. */
export async function nextSubscription(
  db: DbOrTx,
  partnerId: number,
  after: string,
): Promise<Pick<typeof webhookSubscriptions.$inferSelect, "id" | "shard" | "state"> | undefined> {
  const { id, shard, state } = webhookSubscriptions;
  const [row] = await db
    .select({ id, shard, state })
    .from(webhookSubscriptions)
    .where(and(eq(webhookSubscriptions.partnerId, partnerId), gt(id, after)))
    .orderBy(asc(id))
    .limit(1);
  return row;
}

/**
 * Reads the next `DELETED_ROWS` rows of a partner's history after an id, and deletes those of an account, with their
 * queue entries and attempts. The locks on the sequences make redeliveries and batches wait, so that none of them
 * queues a deleted event. An attempt that is being sent is recorded without its response.
 */
export async function deleteEvents(
  tx: Tx,
  { id: accountId, partnerId }: { readonly id: number; readonly partnerId: number },
  after: number,
) {
  const { id, eventId } = reviewHistory;
  const looked = await tx
    .select({ id, eventId, accountId: reviewHistory.accountId })
    .from(reviewHistory)
    .where(and(eq(reviewHistory.partnerId, partnerId), gt(id, after)))
    .orderBy(asc(id))
    .limit(DELETED_ROWS);
  const next = looked.length < DELETED_ROWS ? undefined : looked.at(-1)?.id;
  const own = looked.filter((row) => row.accountId === accountId);
  if (own.length === 0) return { rows: 0, next };
  const [ids, eventIds] = [own.map((row) => row.id), own.map((row) => row.eventId)];
  // This statement takes the longest. It runs before the sequences are locked, because reports for the partner wait for
  // these locks.
  await tx.delete(deliveryAttempts).where(isAttemptOfAny(eventIds));
  const subscriptions = tx
    .select({ id: webhookSubscriptions.id })
    .from(webhookSubscriptions)
    .where(eq(webhookSubscriptions.partnerId, partnerId));
  const { subscriptionId } = outboxSequences;
  await tx
    .select({ subscriptionId })
    .from(outboxSequences)
    .where(inArray(subscriptionId, subscriptions))
    .orderBy(asc(subscriptionId))
    .for("no key update");
  // Locks the offsets before the queue entries, because a commit of attempts takes the locks in the same order.
  await countErasure(tx, [partnerId]);
  // Deletes the attempts again, because some may have been committed before the offsets were locked. Attempts that are
  // committed later contain no response.
  await tx.delete(deliveryAttempts).where(isAttemptOfAny(eventIds));
  await tx.delete(outbox).where(anyOf(outbox.eventId, eventIds));
  await tx
    .delete(batchEntries)
    .where(
      and(
        inArray(batchEntries.subscriptionId, subscriptions),
        anyOf(batchEntries.reviewHistoryId, ids),
      ),
    );
  const { count } = await tx.delete(reviewHistory).where(anyOf(id, ids));
  return { rows: count, next };
}

/** Deletes reviews of an account, and the mails that refer to them. */
export async function deleteReviews(tx: Tx, { id }: Leaving): Promise<number> {
  const some = await tx
    .select({ id: reviews.id })
    .from(reviews)
    .where(eq(reviews.accountId, id))
    .orderBy(asc(reviews.id))
    .limit(DELETED_ROWS);
  const ids = some.map((row) => row.id);
  await tx.delete(mails).where(anyOf(mails.reviewId, ids));
  return (await tx.delete(reviews).where(anyOf(reviews.id, ids))).count;
}

export async function deleteStores(tx: Tx, { id }: Leaving): Promise<number> {
  const some = await tx
    .select({ id: stores.id })
    .from(stores)
    .where(eq(stores.accountId, id))
    .orderBy(asc(stores.id))
    .limit(FEW_ROWS);
  const ids = some.map((row) => row.id);
  await tx.delete(userStores).where(anyOf(userStores.storeId, ids));
  return (await tx.delete(stores).where(anyOf(stores.id, ids))).count;
}

// ------------------------------------------------------------------------------------------------ people and clients

/** Reads the first `FEW_ROWS` users of a company. */
export function firstUsers(db: DbOrTx, { id }: Leaving) {
  return db
    .select({ id: users.id, email: users.email })
    .from(users)
    .where(eq(users.companyId, id))
    .orderBy(asc(users.id))
    .limit(FEW_ROWS);
}

/** Deletes sign-ins of users. The tokens and codes of the users must already be deleted. */
export function deleteSignIns(tx: Tx, userIds: readonly number[]): Promise<number> {
  return deleteSome(tx, authenticationEvents.id, anyOf(authenticationEvents.userId, userIds));
}

export async function deleteUsers(tx: Tx, userIds: readonly number[]): Promise<number> {
  return (await tx.delete(users).where(anyOf(users.id, userIds))).count;
}

const detachingAudit = statement({
  name: "deletion.detachAudit",
  // Raw SQL, because the statement searches three indexes and decides for each of the three ids of a row whether to
  // remove it.
  params: {
    companyId: value("integer"),
    userIds: list(users.id),
    limit: value("bigint"),
  },
  text: ({ companyId, userIds, limit }) => sql`
    with found as materialized (
      (select id from audit_log where actor_id = any(${userIds}) limit ${limit})
       union
      (select id from audit_log where impersonator_id = any(${userIds}) limit ${limit})
       union
      (select id from audit_log where company_id = ${companyId} limit ${limit})
    ), gone as (
      select a.id,
             case when a.company_id = ${companyId} or a.actor_id = any(${userIds}) then a.actor_id end as actor_id,
             case when a.impersonator_id = any(${userIds}) then a.impersonator_id end as impersonator_id,
             case when a.company_id = ${companyId} then a.company_id end as company_id
        from audit_log a where a.id = any(array(select id from found))
    )
    update audit_log
       set ip = null, user_agent = null,
           actor_id = case when gone.actor_id is null then audit_log.actor_id end,
           impersonator_id = case when gone.impersonator_id is null then audit_log.impersonator_id end,
           company_id = case when gone.company_id is null then audit_log.company_id end,
           details = ${keptDetails} || jsonb_build_object('deleted', coalesce(details -> 'deleted', '{}')
             || jsonb_strip_nulls(jsonb_build_object('actor_id', gone.actor_id, 'impersonator_id', gone.impersonator_id,
                                                     'company_id', gone.company_id)))
      from gone where audit_log.id = gone.id`,
});

/**
 * Detaches up to `DELETED_ROWS` rows of the audit log from a company and its users. The rows keep their action and
 * time. Network addresses and texts are removed, and the ids of the company and the users move into `details.deleted`.
 * No row belongs to the company 0, which is the default.
 */
export async function detachAudit(
  tx: Tx,
  { companyId = 0, userIds }: { readonly companyId?: number; readonly userIds: readonly number[] },
): Promise<number> {
  return (await tx.run(detachingAudit, { companyId, userIds, limit: DELETED_ROWS })).count;
}

/** Deletes OAuth clients of a company. Their tokens are deleted first, in several calls, because there may be many. */
export async function deleteClients(tx: Tx, { id }: Leaving): Promise<number> {
  const own = tx
    .select({ id: oauthClients.clientId })
    .from(oauthClients)
    .where(eq(oauthClients.companyId, id));
  const gone = await deleteSome(tx, tokens.jti, inArray(tokens.clientId, own));
  if (gone === DELETED_ROWS) return gone;
  return deleteSome(tx, oauthClients.clientId, eq(oauthClients.companyId, id), FEW_ROWS);
}

export function deleteSsoConnections(tx: Tx, { id }: Leaving): Promise<number> {
  return deleteSome(tx, ssoConnections.id, eq(ssoConnections.companyId, id), FEW_ROWS);
}

// ------------------------------------------------------------------------------------------------ a partner

/**
 * Deletes up to `DELETED_ROWS` rows of one table that belong to a deleted subscription, and returns their number. When
 * no such rows are left in any table, deletes the subscription and returns 0.
 */
export async function deleteQueue(
  tx: Tx,
  { id, shard }: { readonly id: string; readonly shard: number },
): Promise<number> {
  const isOutboxRow = and(eq(outbox.shard, shard), eq(outbox.subscriptionId, id));
  const large: [PgColumn, SQL | undefined][] = [
    [deliveryAttempts.id, eq(deliveryAttempts.subscriptionId, id)],
    [outbox.sequence, isOutboxRow],
    [batchEntries.reviewHistoryId, eq(batchEntries.subscriptionId, id)],
    [outboxSkips.last, eq(outboxSkips.subscriptionId, id)],
    [attemptStats.bucketAt, eq(attemptStats.subscriptionId, id)],
    [backlogStats.bucketAt, eq(backlogStats.subscriptionId, id)],
    [incidents.id, eq(incidents.subscriptionId, id)],
  ];
  for (const [key, where] of large) {
    const deleted = await deleteSome(tx, key, where);
    if (deleted > 0) return deleted;
  }
  await tx.delete(outboxOffsets).where(eq(outboxOffsets.subscriptionId, id));
  await tx.delete(outboxSequences).where(eq(outboxSequences.subscriptionId, id));
  await tx.delete(webhookSubscriptions).where(eq(webhookSubscriptions.id, id));
  return 0;
}

/** Deletes the settings of a partner, and removes the partner from the lists of partners for which services act. */
export async function deleteSettings(tx: Tx, { id }: Leaving): Promise<void> {
  await tx.delete(alertSettings).where(eq(alertSettings.partnerId, id));
  await tx.delete(portalSettings).where(eq(portalSettings.partnerId, id));
  await tx
    .delete(inbox)
    .where(and(inArray(inbox.state, ["waiting", "rejected"]), eq(inbox.partnerId, id)));
  // A service that acts for no other partner keeps an empty list. The list is not set to null, because null means all
  // partners.
  const { partnerIds } = services;
  await tx
    .update(services)
    .set({ partnerIds: sql`array_remove(${partnerIds}, ${id}::integer)` })
    .where(sql`${id}::integer = any(${partnerIds})`);
}

// ------------------------------------------------------------------------------------------------ the company

/**
 * Deletes the row of a company that has no records left. Returns false if a record was added after the step that
 * deletes its kind; the caller then repeats all steps of the company. The lock on the company's row keeps other
 * transactions from adding records during the check.
 */
export async function deleteCompanyRow(tx: Tx, { id }: Leaving): Promise<boolean> {
  const own = eq(companies.id, id);
  await tx.select({ id: companies.id }).from(companies).where(own).for("update");
  const left = [
    eq(stores.accountId, id),
    eq(users.companyId, id),
    eq(storeReviewSites.accountId, id),
    eq(oauthClients.companyId, id),
    eq(ssoConnections.companyId, id),
    eq(webhookSubscriptions.partnerId, id),
    eq(companies.partnerId, id),
    eq(auditLog.companyId, id),
  ];
  const tables = [
    stores,
    users,
    storeReviewSites,
    oauthClients,
    ssoConnections,
    webhookSubscriptions,
    companies,
    auditLog,
  ];
  for (const [i, table] of tables.entries()) {
    const found = await tx
      .select({ one: sql`1` })
      .from(table)
      .where(left[i])
      .limit(1);
    if (found.length > 0) return false;
  }
  await tx.delete(companyDeletions).where(eq(companyDeletions.companyId, id));
  await tx.delete(companies).where(own);
  return true;
}
