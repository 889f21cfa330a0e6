import { eq, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { Tx } from "./client.ts";
import { ONE_ROW } from "./server.ts";
import { onlyRow } from "./statement.ts";

/**
 * The first id of the sequence `own_ids`. The records that setup and the services routes create take their ids from it,
 * near the end of `integer`, so that the ids of a platform that moves in are free: webhooks show them (contract 10.9). The
 * sequences of the tables stay below it.
 */
export const FIRST_OWN_ID = 2_147_000_000;

/** Draws the next id of `own_ids` that no row of the table has. The insert must override the system value. */
export async function ownId(tx: Tx, table: PgTable & { readonly id: PgColumn }): Promise<number> {
  for (;;) {
    const next = sql`nextval('own_ids')`.mapWith(Number);
    const { id } = onlyRow(await tx.select({ id: next }).from(ONE_ROW));
    // An import may have brought records with such ids from another installation.
    if ((await tx.$count(table, eq(table.id, id))) === 0) return id;
  }
}
