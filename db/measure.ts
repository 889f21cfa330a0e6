import { sql, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { nullable, statement, type Value, value } from "./statement.ts";

/** The bytes of large columns after which a statement reads no further row, so that many large rows fit into memory. */
const READ_BYTES = 4 * 1024 * 1024;

const ids: Value<readonly number[]> = { type: "bigint[]", isNullable: false };

/** A row that may be read, and the bytes of its large columns; null if the row is gone. */
export interface Measured {
  readonly id: number | null;
  readonly bytes: number | null;
}

/**
 * Makes a function that returns those first rows of the given ones that a statement may read together: up to the one that
 * exceeds `READ_BYTES`, and thus at least one.
 */
export function measuring(
  name: string,
  { id, bytes }: { readonly id: PgColumn; readonly bytes: SQL },
): (db: DbOrTx, given: readonly number[]) => Promise<readonly Measured[]> {
  const measure = statement({
    name,
    // Raw SQL, because the statement goes from one row to the next and stops after a number of bytes. A window function
    // would measure all of them first.
    params: { given: ids },
    columns: { id: nullable(value("bigint")), bytes: nullable(value("bigint")) },
    text: ({ given }) => sql`
      with recursive given as (select ${given}::bigint[] as ids), walked as (
        select 0 as nth, null::bigint as id, 0::bigint as bytes, 0::bigint as total
         union all
        select nth + 1, ids[nth + 1], measured.bytes, total + coalesce(measured.bytes, 0)
          from walked cross join given
          left join lateral (select (${bytes})::bigint as bytes from ${id.table} where ${id} = ids[nth + 1]) measured on true
         where nth < cardinality(ids) and total < ${sql.raw(String(READ_BYTES))}
      )
      select id, bytes from walked where nth > 0 order by nth`,
  });
  return async (db, given) => (given.length === 0 ? [] : db.run(measure, { given }));
}
