import { sql, type GetColumnData, type SQL } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

/** `inArray` with the values as one parameter, so that the statement is the same for any number of them. */
export function anyOf<C extends PgColumn>(
  column: C,
  values: Iterable<NonNullable<GetColumnData<C>>>,
): SQL {
  return sql`${column} = any(${sql.param([...values])})`;
}

/** Rows behind the last one of a page, in rising order. A cursor may name an id above all that a column can hold. */
export function idAfter(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} > ${cursor}::bigint`;
}

/** The same in falling order. */
export function idBefore(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} < ${cursor}::bigint`;
}

/**
 * Rows behind the last one of a page, the newest first, and those of one instant by id in falling order. The cursor is
 * the instant in ms and the id, with a dot between.
 */
export function instantBefore(
  at: PgColumn,
  id: PgColumn,
  cursor: string | undefined,
): SQL | undefined {
  if (cursor === undefined) return undefined;
  const [ms = "", last = ""] = cursor.split(".");
  // Not by a Date: no driver writes years above 9999 as Postgres reads them.
  const instant = sql`to_timestamp(${ms}::text::bigint / 1000.0)::timestamptz(3)`;
  return sql`(${at}, ${id}) < (${instant}, ${last})`;
}

/** One of these columns has the text, in upper or lower case. No index helps. */
export function someHas(columns: readonly PgColumn[], wanted: string): SQL {
  const texts = sql.join([...columns], sql`, `);
  return sql`position(lower(${wanted}) in lower(concat_ws(E'\\n', ${texts}))) > 0`;
}
