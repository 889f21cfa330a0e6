import { sql } from "drizzle-orm";

import type { Tx } from "./client.ts";
import { onlyRow } from "./only-row.ts";
import { statement, value } from "./statement.ts";

const REASON = "The builder selects from tables; an advisory lock is in none.";
const LOCK = (job: unknown) => sql`hashtext('reviewrelay:' || ${job})`;

const taking = statement({
  name: "turn.take",
  reason: REASON,
  params: { job: value("text") },
  columns: { isMine: value("boolean") },
  text: ({ job }) => sql`select pg_try_advisory_xact_lock(${LOCK(job)}) as "isMine"`,
});

const waiting = statement({
  name: "turn.wait",
  reason: REASON,
  params: { job: value("text") },
  columns: {},
  text: ({ job }) => sql`select from pg_advisory_xact_lock(${LOCK(job)})`,
});

/** Answers true to one process at a time, until its transaction ends. */
export async function takeTurn(tx: Tx, job: "stats"): Promise<boolean> {
  return onlyRow(await tx.run(taking, { job })).isMine;
}

/** Waits until no other transaction has the turn. */
export async function waitForTurn(tx: Tx, job: "alerts"): Promise<void> {
  await tx.run(waiting, { job });
}
