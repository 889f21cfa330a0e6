import { desc, sql, type SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";

/** The id of the nth newest of these rows, where a search that reads n rows ends; undefined if there are fewer. */
export async function nthId(
  db: DbOrTx,
  table: PgTable & { readonly id: PgColumn },
  { nth, where }: { readonly nth: number; readonly where: SQL | undefined },
): Promise<number | undefined> {
  const { id } = table;
  const [row] = await db
    .select({ id: sql`${id}`.mapWith(Number) })
    .from(table)
    .where(where)
    .orderBy(desc(id))
    .offset(nth - 1)
    .limit(1);
  return row?.id;
}
