import { sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { onlyRow } from "../../db/statement.ts";
import type { Clock } from "../lib/clock.ts";
import { unavailable } from "../lib/problem.ts";

/** Maximum time in ms for which a reader waits for the transactions that are writing to its table. */
const WAIT_MS = 2_000;
/** Interval in ms between two checks whether these transactions have ended. */
const LOOK_MS = 10;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * The id that `settledThrough` last returned for each table, by database pool. Every transaction that drew this id or
 * an earlier one has ended.
 */
const settledIds = new WeakMap<Db, Map<string, number>>();

/**
 * Finds the id up to which a table can be read in the order of its ids. A transaction that drew an id early may commit
 * late, after rows with larger ids. A reader that continues after the last row it saw would never see that row. So a
 * page ends before the first id that an open transaction may still use (contract 9.6).
 *
 * Waits for the transactions that may have drawn the last id of the table or an earlier one, and returns that id. If
 * one of them is still open after `WAIT_MS`, returns the id that an earlier call returned, or throws `unavailable` if
 * there was none. `table` is the name of a table with an identity column `id`.
 */
export async function settledThrough({ db, clock }: Deps, table: string): Promise<number> {
  // The last id that the identity column has produced, whether or not its row is committed.
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
  const ids = settledIds.getOrInsertComputed(db, () => new Map());
  if (open.size === 0) ids.set(table, last);
  const through = ids.get(table);
  if (through === undefined) throw unavailable();
  // The result is at most `last`, because in a restored database the last id may be smaller than an id that this
  // process has returned before.
  return Math.min(through, last);
}

/**
 * Returns the open transactions that write to the table. Each of them holds a `RowExclusiveLock` on the table from
 * before its first id until it ends.
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
