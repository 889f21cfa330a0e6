import { getTableName, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";

import type { Tx } from "./client.ts";

/**
 * The time in milliseconds that one try waits for a lock on a table, in each of at most `LOCK_TRIES` tries. All later
 * readers and writers of the table queue behind a request for a strong lock, so that each try delays them by this much,
 * and the pauses between the tries let them run. A table that a dump or a long transaction holds is left for later.
 */
export const LOCK_MS = 50;
const LOCK_TRIES = 5;
/** The first pause in seconds; each further one is twice as long. */
const PAUSE_S = 0.1;

/**
 * Makes a statement that runs other statements, whose strong locks on tables it waits for in short tries. No later
 * statement of the transaction waits longer than one try. The statement fails with a lock timeout after the last try.
 */
export function retryLocks(statements: string): string {
  return `do $$ begin
    perform set_config('lock_timeout', '${LOCK_MS}', true);
    for tried in 1..${LOCK_TRIES} loop
      begin
        ${statements}
        return;
      exception when lock_not_available then
        if tried = ${LOCK_TRIES} then raise; end if;
      end;
      perform pg_sleep(${PAUSE_S} * 2 ^ (tried - 1));
    end loop;
  end $$`;
}

/**
 * Locks a table until the commit against transactions that write to it, and with `exclusive` also against those that lock
 * rows of it; never against readers, such as a dump.
 */
export async function lockTable(
  tx: Tx,
  table: PgTable,
  mode: "share row exclusive" | "exclusive",
): Promise<void> {
  const name = getTableName(table);
  const statement = retryLocks(`lock table ${name} in ${mode} mode;`);
  await tx.execute(sql`${sql.raw(statement)}`);
}
