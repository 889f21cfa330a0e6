import { sql } from "drizzle-orm";

import type { Tx } from "./client.ts";
import { statement } from "./statement.ts";

// What the planner is told for the rest of a transaction, and not beyond: nothing of ours lives in a session, which a
// pooler may hand to others.

const lookUp = statement({
  name: "planning.lookUp",
  reason: "The builder selects from tables; a setting is in none.",
  params: {},
  columns: {},
  text: () => sql`select from set_config('enable_seqscan', 'off', true)`,
});

/**
 * Has tables be read by their indexes. Otherwise a plan that was made while a table was small goes on reading all of it,
 * however large it has become, until somebody analyses it.
 */
export async function planLookUps(tx: Tx): Promise<void> {
  await tx.run(lookUp, {});
}
