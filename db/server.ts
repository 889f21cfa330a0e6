import { sql } from "drizzle-orm";

import type { DbOrTx, Tx, Db } from "./client.ts";
import { onlyRow, instant, statement, value } from "./statement.ts";

const clockOfServer = statement({
  name: "serverTime",
  // It is of no table.
  columns: { now: instant },
  text: () => sql`select clock_timestamp() as now`,
});

/** What time it is for Postgres, whose clock decides about data. */
export async function serverTime(db: DbOrTx): Promise<Date> {
  return onlyRow(await db.run(clockOfServer, {})).now;
}

const LOCK = (job: unknown) => sql`hashtext('reviewrelay:' || ${job})`;

const taking = statement({
  name: "turn.take",
  // The builder selects from tables; an advisory lock is in none.
  params: { job: value("text") },
  columns: { isMine: value("boolean") },
  text: ({ job }) => sql`select pg_try_advisory_xact_lock(${LOCK(job)}) as "isMine"`,
});

const waiting = statement({
  name: "turn.wait",
  // The builder selects from tables; an advisory lock is in none.
  params: { job: value("text") },
  text: ({ job }) => sql`select from pg_advisory_xact_lock(${LOCK(job)})`,
});

/** Answers true to one process at a time, until its transaction ends. */
export async function takeTurn(tx: Tx, job: "stats"): Promise<boolean> {
  return onlyRow(await tx.run(taking, { job })).isMine;
}

/** Waits until no other transaction has the turn. */
export async function waitForTurn(tx: Tx, job: "alerts" | "partitions"): Promise<void> {
  await tx.run(waiting, { job });
}

const write = statement({
  name: "ready.write",
  // Writes to the log alone, where nothing is left to be cleaned up; the builder has no such word.
  columns: { readOnly: value("text") },
  text: () => sql`
    select current_setting('transaction_read_only') as "readOnly"
      from pg_logical_emit_message(true, 'reviewrelay', 'ready')`,
});

const littleMemory = statement({
  name: "ready.littleMemory",
  // The builder selects from tables; a setting is in none.
  text: () => sql`select from set_config('work_mem', '64kB', true)`,
});

const spill = statement({
  name: "ready.spill",
  // Is more than the memory that it may have, so that it goes through a file: a full disk refuses that.
  columns: { rows: value("bigint") },
  text: () => sql`
    with much as materialized (select repeat('x', 1000) as text from generate_series(1, 200))
    select count(*) as rows from much`,
});

/** Whoever may ask for readiness may not write as fast as they can. */
const ONCE_IN_MS = 500;

/**
 * A probe that fails unless the database takes a write now: not on a standby, not with a full disk. Those who ask at the
 * same time share one, and it answers those who ask soon after.
 */
export function writable(db: Db): () => Promise<void> {
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

function tryToWrite(db: Db): Promise<void> {
  return db.transaction(async (tx) => {
    await tx.run(littleMemory, {});
    await tx.run(spill, {});
    const [row] = await tx.run(write, {});
    if (row?.readOnly !== "off") throw new Error("The database is read-only.");
  });
}
