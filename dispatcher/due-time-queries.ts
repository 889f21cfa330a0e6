import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx } from "../db/client.ts";
import { alerts, mails } from "../db/schema/alerts.ts";
import { auditWebhooks } from "../db/schema/companies.ts";
import { outbox } from "../db/schema/outbox.ts";
import { signInLocks } from "../db/schema/sign-in.ts";
import { webhookSubscriptions } from "../db/schema/webhooks.ts";
import { nullable, onlyRow, statement, value } from "../db/statement.ts";
import { MAIL_RETRY_DELAYS_MS, UNREADABLE_DELAY_MS } from "./mail/decide.ts";
import type { Log } from "../src/lib/log.ts";
import { CLAIM_MS as POST_CLAIM_MS } from "./alerts/queries.ts";
import type { Done } from "./maintenance/loop.ts";

/*
 * Due times follow the clock of PostgreSQL. While that clock is ahead, it writes due times that are too late, and after
 * the clock is set back, rows with these due times would wait for too long. A due time that is further ahead than its
 * delay allows was written by a clock that was ahead, so it is brought back to the present time plus that delay
 * (contract 7.7). Maintenance jobs do the same for their next runs (`claimJobs`); leases are never compared with a
 * clock (lease-queries.ts).
 */

export interface DueTimesDeps {
  readonly db: DbOrTx;
  readonly log: Log;
  readonly config: {
    readonly retryDelaysMs: readonly number[];
    readonly batchHourMs: number;
    readonly lockScheduleS: readonly number[];
    /** The longest pause of the audit webhook in ms. */
    readonly auditPauseMs: number;
  };
}

/**
 * The time in milliseconds by which a due time may be too late without a correction, because the processes that write
 * some due times see the clock of PostgreSQL with a delay.
 */
const TOLERANCE_MS = 5_000;
/** The most entries waiting for a retry that one chunk reads. */
const WALKED_ROWS = 5_000;

const retryMoves = statement({
  name: "maintenance.bringRetriesBack",
  // Raw SQL, because the statement walks a bounded part of an index, whose columns are the cursor, and looks up the
  // delay of each attempt.
  params: {
    id: outbox.subscriptionId,
    sequence: outbox.sequence,
    delaysMs: value("text"),
    toleranceMs: value("double precision"),
    limit: value("bigint"),
  },
  columns: { next: nullable(value("text")), rows: value("integer") },
  text: ({ id, sequence, delaysMs, toleranceMs, limit }) => sql`
    with walked as materialized (
      select ctid, subscription_id, sequence, attempt, due_at from outbox
       where state = 'waiting' and (subscription_id, sequence) > (${id}, ${sequence})
       order by subscription_id, sequence limit ${limit}
    ), ahead as materialized (
      select * from (
        select *, now() + coalesce((${delaysMs}::text::float8[])[attempt - 1], 0) * interval '1 millisecond' as latest
          from walked) w
       where due_at > latest + ${toleranceMs}::float8 * interval '1 millisecond'
    ), moved as (
      update outbox o set due_at = a.latest from ahead a
       where o.ctid = a.ctid and o.state = 'waiting' and o.attempt = a.attempt and o.due_at = a.due_at
      returning o.shard, o.subscription_id, o.review_id, o.due_at
    ), followed as (
      -- Entries that wait behind a moved entry of their review wait until its new due time (\`postponeBehind\`).
      update outbox o set behind_until = b.due_at
        from (select b.place, m.due_at
                from (select shard, subscription_id, coalesce(review_id, 0) as review, min(due_at) as due_at from moved
                       group by shard, subscription_id, review) m
               cross join lateral (
                      select ctid as place from outbox
                       where shard = m.shard and subscription_id = m.subscription_id and coalesce(review_id, 0) = m.review
                         and behind_until > m.due_at and not is_test and skipped_at is null offset 0) b) b
       where o.ctid = b.place
    )
    select (select concat(subscription_id, ' ', sequence) from walked
             where (select count(*) from walked) = ${limit}
             order by subscription_id desc, sequence desc limit 1) as next,
           (select count(*)::int from moved) as rows`,
});

/**
 * Brings back the due times of the next waiting entries. An entry may be due at most the delay of its next attempt
 * after now.
 */
async function bringRetriesBack({ db, config }: DueTimesDeps, reached: string): Promise<Done> {
  const [id = "", sequence = "0"] = reached.split(" ");
  const given = { delaysMs: `{${config.retryDelaysMs.join()}}`, toleranceMs: TOLERANCE_MS };
  const place = { id, sequence: Number(sequence), limit: WALKED_ROWS };
  return onlyRow(await db.run(retryMoves, { ...given, ...place }));
}

/**
 * Brings back the values of a column that are further ahead of the present time than the delay in ms, to the present
 * time plus that delay.
 */
async function bringBack(db: DbOrTx, column: PgColumn, delayMs: SQL, where: SQL): Promise<number> {
  const latest = sql`now() + (${delayMs}) * interval '1 millisecond'`;
  const { count } = await db.execute(sql`
    update ${column.table} set ${sql.identifier(column.name)} = ${latest}
     where ${where} and ${column} > ${latest} + ${TOLERANCE_MS} * interval '1 millisecond'`);
  return count;
}

/**
 * Moves batches back by whole intervals, because the due times of a subscription are whole intervals apart (contract
 * 7.14).
 */
async function bringBatchesBack({ db, config }: DueTimesDeps): Promise<number> {
  const { nextBatchAt, batchIntervalHours } = webhookSubscriptions;
  const interval = sql`(${batchIntervalHours} * ${config.batchHourMs}::float8 * interval '1 millisecond')`;
  const { count } = await db.execute(sql`
    update ${webhookSubscriptions}
       set next_batch_at = ${nextBatchAt} - ${interval}
             * floor(extract(epoch from ${nextBatchAt} - now()) / extract(epoch from ${interval}))
     where ${nextBatchAt} > now() + ${interval} + ${TOLERANCE_MS} * interval '1 millisecond'`);
  return count;
}

const longestOf = (...delays: readonly number[]) => sql`${Math.max(0, ...delays)}::float8`;

/**
 * Brings back all due times that were written while the clock of PostgreSQL was ahead. The first chunk of a run handles
 * all due times except those of retries. Every chunk handles a part of the entries that wait for a retry.
 */
export async function bringDueTimesBack(deps: DueTimesDeps, reached: string): Promise<Done> {
  const { db, config, log } = deps;
  const counts: Record<string, number> = {};
  if (reached === "") {
    const posts = longestOf(POST_CLAIM_MS, ...config.retryDelaysMs);
    const mailDelays = sql`(${`{${MAIL_RETRY_DELAYS_MS.join()}}`}::text::float8[])[${mails.attempt} - 1]`;
    const mail = sql`greatest(${mailDelays}, ${UNREADABLE_DELAY_MS}::float8)`;
    const lock = longestOf(...config.lockScheduleS.map((seconds) => seconds * 1_000));
    const isPosted = sql`${alerts.webhookState} = 'queued'`;
    counts["batches"] = await bringBatchesBack(deps);
    counts["mails"] = await bringBack(db, mails.dueAt, mail, sql`${mails.state} = 'queued'`);
    counts["alerts"] = await bringBack(db, alerts.webhookDueAt, posts, isPosted);
    counts["audit_webhook"] = await bringBack(
      db,
      auditWebhooks.nextAt,
      longestOf(config.auditPauseMs),
      sql`true`,
    );
    counts["sign_in_locks"] = await bringBack(db, signInLocks.lockedUntil, lock, sql`true`);
  }
  const done = await bringRetriesBack(deps, reached);
  counts["retries"] = done.rows;
  const moved = Object.entries(counts).filter(([, count]) => count > 0);
  if (moved.length > 0) log.warn("due_times.restored", Object.fromEntries(moved));
  return { ...done, rows: moved.reduce((sum, [, count]) => sum + count, 0) };
}
