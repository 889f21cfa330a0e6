import { getTableName, sql } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";

import type { Tx } from "./client.ts";

/**
 * Time in ms that one try waits for a lock on a table; there are at most `LOCK_TRIES` tries. All later readers and
 * writers of the table queue behind a request for a strong lock. So each try delays them by at most this time, and the
 * pauses between the tries let them run. If a dump or a long transaction has locked the table, all tries fail.
 */
export const LOCK_MS = 50;
const LOCK_TRIES = 5;
/** Length of the first pause in s. Each further pause is twice as long. */
const PAUSE_S = 0.1;

/**
 * Builds a statement that runs other statements and waits for their strong table locks in several short tries. No later
 * statement of the transaction waits longer for a lock than one try. The statement fails with a lock timeout after the
 * last try.
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
 * Locks a table until the commit against transactions that write to it. `exclusive` also locks it against transactions
 * that lock its rows. Readers, such as a dump, are never blocked.
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
