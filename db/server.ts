import { sql } from "drizzle-orm";

import type { DbOrTx, Tx, Db } from "./client.ts";
import { onlyRow, instant, statement, value } from "./statement.ts";

const clockOfServer = statement({
  name: "serverTime",
  // Raw SQL, because Drizzle's query builder cannot express a `select` without a table.
  columns: { now: instant },
  text: () => sql`select clock_timestamp() as now`,
});

/** Reads PostgreSQL's clock, which decides about the age of data. */
export async function serverTime(db: DbOrTx): Promise<Date> {
  return onlyRow(await db.run(clockOfServer, {})).now;
}

const LOCK = (job: unknown) => sql`hashtext('reviewrelay:' || ${job})`;

const taking = statement({
  name: "turn.take",
  // Raw SQL, because Drizzle's query builder selects from tables only, and an advisory lock belongs to no table.
  params: { job: value("text") },
  columns: { isMine: value("boolean") },
  text: ({ job }) => sql`select pg_try_advisory_xact_lock(${LOCK(job)}) as "isMine"`,
});

const waiting = statement({
  name: "turn.wait",
  // Raw SQL, because Drizzle's query builder selects from tables only, and an advisory lock belongs to no table.
  params: { job: value("text") },
  text: ({ job }) => sql`select from pg_advisory_xact_lock(${LOCK(job)})`,
});

/** Tries to take the lock of a job until the end of the transaction. Returns whether it was free. */
export async function takeTurn(tx: Tx, job: "stats"): Promise<boolean> {
  return onlyRow(await tx.run(taking, { job })).isMine;
}

/** Waits for the lock of a job and holds it until the end of the transaction. */
export async function waitForTurn(tx: Tx, job: "alerts" | "partitions"): Promise<void> {
  await tx.run(waiting, { job });
}

const write = statement({
  name: "ready.write",
  // Raw SQL for a function that Drizzle's query builder cannot express. It writes to the write-ahead log only, so
  // that nothing has to be cleaned up.
  columns: { readOnly: value("text") },
  text: () => sql`
    select current_setting('transaction_read_only') as "readOnly"
      from pg_logical_emit_message(true, 'reviewrelay', 'ready')`,
});

const littleMemory = statement({
  name: "ready.littleMemory",
  // Raw SQL, because Drizzle's query builder selects from tables only, and a setting belongs to no table.
  text: () => sql`select from set_config('work_mem', '64kB', true)`,
});

const spill = statement({
  name: "ready.spill",
  // Raw SQL that produces more data than `work_mem` allows, so that PostgreSQL writes a temporary file. This fails if
  // the disk is full.
  columns: { rows: value("bigint") },
  text: () => sql`
    with much as materialized (select repeat('x', 1000) as text from generate_series(1, 200))
    select count(*) as rows from much`,
});

/**
 * The shortest interval in milliseconds between two writes of the probe, because anyone may call `/readyz` at any
 * rate.
 */
const ONCE_IN_MS = 500;

/**
 * Returns a probe that fails if the database cannot write now, for example because it is a standby or its disk is
 * full. Concurrent calls share one write, and its result is reused for `ONCE_IN_MS`.
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
