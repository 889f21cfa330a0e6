import { sql } from "drizzle-orm";

import type { Tx } from "./client.ts";
import { onlyRow } from "./only-row.ts";
import { statement, value } from "./statement.ts";

const taking = statement({
  name: "turn.take",
  reason: "The builder selects from tables; an advisory lock is in none.",
  params: { job: value("text") },
  columns: { isMine: value("boolean") },
  text: ({ job }) => sql`
    select pg_try_advisory_xact_lock(hashtext('reviewrelay:' || ${job})) as "isMine"`,
});

/** True for one process at a time, until the transaction ends. */
export async function takeTurn(tx: Tx, job: "alerts" | "auth-purge" | "stats"): Promise<boolean> {
  return onlyRow(await tx.run(taking, { job })).isMine;
}
