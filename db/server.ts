import { sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "./client.ts";
import { onlyRow } from "./rows.ts";
import { instant, statement, value } from "./statement.ts";

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
