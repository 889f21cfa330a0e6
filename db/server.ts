import { sql } from "drizzle-orm";

import type { DbOrTx, Tx, RawDb } from "./client.ts";
import { isEnded } from "./errors.ts";
import { serverFault, sessionFault } from "./session-settings.ts";
import { onlyRow, statement, value } from "./statement.ts";

/** A one-row table without columns, for a query that reads no table. */
export const ONE_ROW = sql`(select) as one`;

/** Reads PostgreSQL's clock, by which the age of data is determined. */
export async function serverTime(db: DbOrTx): Promise<Date> {
  const now = sql`clock_timestamp()`.mapWith((at: Date) => at);
  return onlyRow(await db.select({ now }).from(ONE_ROW)).now;
}

const lockOf = (job: string) => sql`hashtext('reviewrelay:' || ${job})`;

/** Tries to take the lock of a job until the end of the transaction. Returns whether the lock was free. */
export async function tryJobLock(tx: Tx, job: "stats"): Promise<boolean> {
  const isMine = sql`pg_try_advisory_xact_lock(${lockOf(job)})`.mapWith(Boolean);
  return onlyRow(await tx.select({ isMine }).from(ONE_ROW)).isMine;
}

/**
 * The kinds of things that are locked by advisory locks with two keys: the kind is the first key, and the thing the
 * second. The locks of jobs have one key, which PostgreSQL distinguishes from two keys. So locks of different kinds, or
 * of jobs, cannot collide.
 */
const LOCKED_THINGS = { inboxOfPartner: 42, hourlyAudit: 43, checksOfPartner: 44 } as const;
type LockedThing = keyof typeof LOCKED_THINGS;

/** Tries to take the lock of a thing until the end of the transaction. Returns whether the lock was free. */
export async function tryLock(tx: Tx, kind: LockedThing, id: number): Promise<boolean> {
  const lock = sql`pg_try_advisory_xact_lock(${LOCKED_THINGS[kind]}::int, ${id}::int)`;
  return onlyRow(await tx.select({ isMine: lock.mapWith(Boolean) }).from(ONE_ROW)).isMine;
}

/** Waits for the lock of a thing that a text identifies, and holds it until the end of the transaction. */
export async function waitForLock(tx: DbOrTx, kind: LockedThing, name: string): Promise<void> {
  const key = sql`hashtext(${name}::text)`;
  await tx.execute(sql`select from pg_advisory_xact_lock(${LOCKED_THINGS[kind]}::int, ${key})`);
}

/** Waits for the lock of a job and holds it until the end of the transaction. */
export async function waitForTurn(tx: Tx, job: "alerts" | "partitions"): Promise<void> {
  await tx.execute(sql`select from pg_advisory_xact_lock(${lockOf(job)})`);
}

/** Makes all later statements of a transaction read a snapshot of one instant. It must be the first statement. */
export async function readOneInstant(tx: Tx): Promise<void> {
  await tx.execute(sql`set transaction isolation level repeatable read, read only`);
}

const boundWait = statement({
  name: "server.boundLockWait",
  // A declared statement, because it is sent when it is called: before the statements that wait for locks, and together
  // with them.
  params: { ms: value("text") },
  text: ({ ms }) => sql`select from set_config('lock_timeout', ${ms}, true)`,
});

/** Limits the time in ms for which each later statement of the transaction waits for a lock. */
export const boundLockWait = (tx: Tx, ms: number) => tx.run(boundWait, { ms: String(ms) });

/** Minimum interval in ms between two writes of the probe, because anyone may call `/readyz` at any rate. */
const ONCE_IN_MS = 500;

/**
 * Returns a probe that fails if the database cannot write now, for example because it is a standby or its disk is full.
 * It also fails if the settings of a session outside of transactions are wrong. Concurrent calls share one write, and
 * its result is reused for `ONCE_IN_MS`.
 */
export function writable(db: RawDb): () => Promise<void> {
  let probe: Promise<void> | undefined;
  let begunMs = 0;
  return () => {
    const nowMs = performance.now();
    if (probe === undefined || nowMs - begunMs > ONCE_IN_MS) {
      begunMs = nowMs;
      probe = tryToWrite(db);
    }
    return probe;
  };
}

async function tryToWrite(db: RawDb): Promise<void> {
  const fault = await sessionFault(db);
  if (fault !== undefined) throw new Error(fault);
  await db.transaction(async (tx) => {
    // Checks the disk: data that exceed `work_mem` make PostgreSQL write a temporary file, which fails if the disk is
    // full.
    await tx.execute(sql`select from set_config('work_mem', '64kB', true)`);
    await tx.execute(sql`
      with much as materialized (select repeat('x', 1000) as text from generate_series(1, 200))
      select count(*) from much`);
    // The message is written only to the write-ahead log, so that nothing has to be deleted afterwards.
    const readOnly = sql`current_setting('transaction_read_only')`.mapWith(String);
    const message = sql`pg_logical_emit_message(true, 'reviewrelay', 'ready')`;
    const [row] = await tx.select({ readOnly }).from(message);
    if (row?.readOnly !== "off") throw new Error("The database is read-only.");
  });
}

const STATEMENT_POOLED =
  "The pooler runs each statement in another session (`pool_mode = statement`), and nothing is committed together: set " +
  "`pool_mode = transaction` for this database.";

/**
 * Number of connections that must be ended before a pooler is assumed, because a server that restarts also ends one.
 */
const POOLING_TRIES = 3;

/**
 * Returns an error message if each connection that begins a transaction is ended while single statements succeed, which
 * means that a pooler is between this process and the server.
 */
export async function poolingFault(db: RawDb): Promise<string | undefined> {
  for (let tried = 0; tried < POOLING_TRIES; tried++)
    try {
      await db.transaction((tx) => tx.execute(sql`select 1`));
      return undefined;
    } catch (error) {
      if (!isEnded(error)) throw error;
      // If a single statement fails, too, the database is unavailable, and its error is thrown.
      await db.execute(sql`select 1`);
    }
  return STATEMENT_POOLED;
}

/**
 * Returns an error message if the server, a pooler in front of it, or its sessions do not meet the requirements of the
 * service.
 */
export async function groundFault(db: RawDb): Promise<string | undefined> {
  return (await serverFault(db)) ?? (await poolingFault(db)) ?? (await sessionFault(db));
}
