import { and, asc, not, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { neverNull } from "../../db/never-null.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { mails } from "../../db/schema/mails.ts";
import { instant, statement, value } from "../../db/statement.ts";

// The write that is fenced by the lease is SQL.

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

/** The states are literals, because Postgres uses a partial index only where it can see that its condition holds. */
const isQueued = sql`${mails.state} = 'queued'`;

/** The queued mails that are due first, now or later. */
export async function nextMails(
  db: Db,
  limit: number,
  except: readonly string[],
): Promise<QueuedMailRow[]> {
  const { id, kind, sealedMessage, attempt, dueAt, expiresAt, createdAt } = mails;
  const rows = await db
    .select({ id, kind, sealedMessage, attempt, dueAt, expiresAt, createdAt })
    .from(mails)
    .where(and(isQueued, not(anyOf(id, except))))
    .orderBy(asc(dueAt), asc(id))
    .limit(limit);
  return rows.map((row) => ({
    ...row,
    sealedMessage: neverNull(row.sealedMessage),
    dueAt: neverNull(row.dueAt),
  }));
}

/** When the first queued mail is due; undefined if none is queued. */
export async function nextMailAt(db: Db): Promise<Date | undefined> {
  const { dueAt } = mails;
  const [row] = await db.select({ dueAt }).from(mails).where(isQueued).orderBy(asc(dueAt)).limit(1);
  return row && neverNull(row.dueAt);
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

const moving = statement({
  name: "mails.commit",
  reason: "Locks the lease and writes under it in one statement.",
  params: {
    dispatcherId: dispatchers.id,
    id: mails.id,
    fromAttempt: mails.attempt,
    state: mails.state,
    attempt: mails.attempt,
    dueAt: mails.dueAt,
    errorCode: mails.errorCode,
    error: mails.lastError,
    now: instant,
  },
  columns: { held: value("integer") },
  text: ({ dispatcherId, id, fromAttempt, state, attempt, dueAt, ...the }) => sql`
    with lease as materialized (
      select id from dispatchers where id = ${dispatcherId} for key share
    ), moved as (
      update mails m
         set state = ${state}::text, attempt = ${attempt}::smallint, due_at = ${dueAt}::timestamptz,
             settled_at = case when ${state}::text <> 'queued' then ${the.now}::timestamptz end,
             sealed_message = case when ${state}::text = 'queued' then m.sealed_message end,
             error_code = coalesce(${the.errorCode}::text, m.error_code),
             last_error = coalesce(${the.error}::text, m.last_error)
        from lease
       where m.id = ${id} and m.state = 'queued' and m.attempt = ${fromAttempt}
    )
    select count(*)::int as held from lease`,
});

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
  const [row] = await db.run(moving, { ...move, dispatcherId, now });
  return row?.held === 1;
}
