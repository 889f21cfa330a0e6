import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { onlyRow } from "../../db/statement.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";

/** The longest wait in milliseconds for transactions that are writing to the table. */
const WAIT_MS = 2_000;
/** The pause in milliseconds between two looks at these transactions. */
const LOOK_MS = 10;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
}

/** The last id of each table up to which every transaction had ended when this process looked, by pool. */
const settled = new WeakMap<Db, Map<string, number>>();

/**
 * Finds up to which id a table can be read in the order of its ids. A transaction that took an id early may commit late,
 * after rows with larger ids. A reader that continues after the last row it saw would never see such a row, so a page
 * ends before the first id that an open transaction may still use (contract 9.6).
 *
 * Waits for the transactions that may have taken the last id of the table or an earlier one, and returns this id. If one
 * of them is still open after `WAIT_MS`, the result is the id that an earlier call returned; without an earlier call
 * the function throws `unavailable`. `table` names a table with an identity column `id`.
 */
export async function settledThrough({ db, clock }: Deps, table: string): Promise<number> {
  // The last id that PostgreSQL has given out, whether or not its row is committed.
  const { last } = onlyRow(
    await db
      .select({ last: sql`last_value`.mapWith(Number) })
      .from(sql`${sql.identifier(`${table}_id_seq`)}`),
  );
  const untilMs = clock.monotonicMs() + WAIT_MS;
  let open = await openWriters(db, table);
  while (open.size > 0 && clock.monotonicMs() < untilMs) {
    await clock.sleep(LOOK_MS);
    open = open.intersection(await openWriters(db, table));
  }
  const ids = settled.getOrInsertComputed(db, () => new Map());
  if (open.size === 0) ids.set(table, last);
  const through = ids.get(table);
  if (through === undefined) throw unavailable();
  // A restored database may have given out fewer ids than this process has seen.
  return Math.min(through, last);
}

/**
 * Returns the open transactions that write to the table. Each holds this lock before it takes its first id, and until
 * it ends.
 */
async function openWriters(db: Db, table: string): Promise<Set<string>> {
  const rows = await db
    .select({ id: sql`virtualtransaction`.mapWith(String) })
    .from(sql`pg_locks`)
    .where(
      sql`relation = to_regclass(${table}::text) and mode = 'RowExclusiveLock' and granted
            and database = (select oid from pg_database where datname = current_database())`,
    );
  return new Set(rows.map(({ id }) => id));
}
