import { eq, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { Tx } from "./client.ts";
import { ONE_ROW } from "./server.ts";
import { onlyRow } from "./statement.ts";

/**
 * The first id of the sequence `own_ids`, near the end of the range of `integer`. Setup and the services routes take
 * the ids of the rows that they insert from it. So an import can keep all smaller ids of a platform, which its webhooks
 * contain (contract 10.9). The sequences of the tables stay below this id.
 */
export const FIRST_OWN_ID = 2_147_000_000;

/** Draws ids of `own_ids` until no row of the table has the id. The insert must override the system value. */
export async function ownId(tx: Tx, table: PgTable & { readonly id: PgColumn }): Promise<number> {
  for (;;) {
    const next = sql`nextval('own_ids')`.mapWith(Number);
    const { id } = onlyRow(await tx.select({ id: next }).from(ONE_ROW));
    // The id may be taken: an import from another installation may have inserted rows with ids of this range.
    if ((await tx.$count(table, eq(table.id, id))) === 0) return id;
  }
}
