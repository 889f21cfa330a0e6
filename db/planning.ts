import { sql } from "drizzle-orm";

import type { Db, Tx } from "./client.ts";
import { statement } from "./statement.ts";

// What the planner is told for the rest of a transaction, and not beyond: nothing of ours lives in a session, which a
// pooler may hand to others.

const walk = statement({
  name: "planning.walk",
  reason: "The builder selects from tables; a setting is in none.",
  params: {},
  columns: {},
  text: () =>
    sql`select from set_config('enable_sort', 'off', true) sort, set_config('enable_bitmapscan', 'off', true) bitmap,
                    set_config('jit', 'off', true) jit`,
});

/**
 * Has an index be walked to the first rows of an order. Otherwise the planner, where its statistics are old, expects a few
 * rows, and reads and sorts all that there are. The plan is interpreted: where nothing but a sort is left, PostgreSQL
 * before 18 takes it for so dear that it would compile it.
 */
export async function planWalks(tx: Tx): Promise<void> {
  await tx.run(walk, {});
}

const interpret = statement({
  name: "planning.interpret",
  reason: "The builder selects from tables; a setting is in none.",
  params: {},
  columns: {},
  text: () => sql`select from set_config('jit', 'off', true)`,
});

/**
 * Reads with plans that are interpreted. What looks into many queues, or into the attempts of every day, seems dear to the
 * planner, and to compile its plan takes longer than to run it.
 */
export function readInterpreted<T>(
  db: Pick<Db, "transaction">,
  read: (tx: Tx) => Promise<T>,
): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.run(interpret, {});
    return read(tx);
  });
}
