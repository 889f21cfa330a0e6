import type { Db, DbOrTx } from "../../db/client.ts";

/** A mail that waits to be sent. */
export interface QueuedMailRow {
  readonly id: string;
  readonly kind: string;
  readonly sealedMessage: string;
  readonly attempt: number;
  readonly dueAt: Date;
  readonly expiresAt: Date | null;
  readonly createdAt: Date;
}

/** The queued mails that are due first, now or later. */
export async function nextMails(
  db: Db,
  limit: number,
  except: readonly string[],
): Promise<QueuedMailRow[]> {
  return db.sql<QueuedMailRow[]>`
    select id, kind, sealed_message as "sealedMessage", attempt, due_at as "dueAt", expires_at as "expiresAt",
           created_at as "createdAt"
      from mails
     where state = 'queued' and id <> all(${except}::text[])
     order by due_at, id
     limit ${limit}`;
}

/** When the first queued mail is due; undefined if none is queued. */
export async function nextMailAt(db: Db): Promise<Date | undefined> {
  const [row] = await db.sql<{ at: Date }[]>`
    select due_at as at from mails where state = 'queued' order by due_at limit 1`;
  return row?.at;
}

/** Where a mail goes after an attempt. With a `dueAt` it stays queued, otherwise it is settled and its message erased. */
export interface MailMove {
  readonly id: string;
  /** The attempt that was decided on: the row moves only from there. */
  readonly fromAttempt: number;
  readonly state: "queued" | "sent" | "dead";
  readonly attempt: number;
  readonly dueAt: Date | null;
  readonly errorCode: string | null;
  readonly error: string | null;
}

/**
 * Moves one mail on, and only while this process holds its lease, whose row is locked meanwhile. False: it was
 * declared dead, and nothing was written. The same move again changes nothing more.
 */
export async function commitMail(
  db: Db,
  dispatcherId: string,
  move: MailMove,
  now: Date,
): Promise<boolean> {
  const [row] = await db.sql<[{ held: number }]>`
    with lease as materialized (
      select id from dispatchers where id = ${dispatcherId} for key share
    ), moved as (
      update mails m
         set state = ${move.state}::text, attempt = ${move.attempt}::smallint, due_at = ${move.dueAt}::timestamptz,
             settled_at = case when ${move.state}::text <> 'queued' then ${now}::timestamptz end,
             sealed_message = case when ${move.state}::text = 'queued' then m.sealed_message end,
             error_code = coalesce(${move.errorCode}::text, m.error_code),
             last_error = coalesce(${move.error}::text, m.last_error)
        from lease
       where m.id = ${move.id} and m.state = 'queued' and m.attempt = ${move.fromAttempt}
    )
    select count(*)::int as held from lease`;
  return row.held === 1;
}

/** Forgets mails that were settled before `before`; answers how many. */
export async function purgeMails(db: Db, before: Date): Promise<number> {
  const { count } = await db.sql`
    delete from mails where state <> 'queued' and settled_at < ${before}`;
  return count;
}

/** Whom to tell of a disabled subscription: the active owners of its partner. */
export async function ownersOf(
  tx: DbOrTx,
  subscriptionIds: readonly string[],
): Promise<{ subscriptionId: string; label: string; webhookUrl: string; email: string }[]> {
  return tx.sql`
    select w.id as "subscriptionId", w.label, w.webhook_url as "webhookUrl", u.email
      from webhook_subscriptions w
      join users u on u.company_id = w.partner_id and u.role = 'partner_owner' and u.is_active
     where w.id = any(${subscriptionIds}::text[])
     order by u.id`;
}
