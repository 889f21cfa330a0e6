import { Column, is, sql, type SQL, Subquery } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { nullable, statement, type Value, value } from "./statement.ts";

/**
 * Size in bytes of large columns after which a statement reads no further row, so that many large rows do not fill the
 * memory.
 */
export const READ_BYTES = 4 * 1024 * 1024;

const ids: Value<readonly number[]> = { type: "bigint[]", isNullable: false };

/** A row that may be read, and the size in bytes of its large columns; null if the row was deleted. */
export interface Measured {
  readonly id: number | null;
  readonly bytes: number | null;
}

/**
 * Creates a function that returns the first of the given rows, as many as one statement may read together. They end
 * with the row that brings the sum of bytes to `READ_BYTES`, so there is at least one row.
 */
export function measuring(
  name: string,
  { id, bytes }: { readonly id: PgColumn; readonly bytes: SQL },
): (db: DbOrTx, given: readonly number[]) => Promise<readonly Measured[]> {
  const measure = statement({
    name,
    // Raw SQL, because the statement reads one row after the other and stops after a number of bytes. A window function
    // would measure all rows first.
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

/**
 * Returns the expression for the size in bytes of columns of a row. PostgreSQL knows the size of a text without reading
 * it, and the size of JSON if it is stored uncompressed. Small values are never compressed, so their size takes almost
 * no time.
 */
export function bytesOf(row: string, columns: readonly PgColumn[]): SQL {
  const sizes = columns.map((column) => {
    const name = `${row}.${column.name}`;
    const size =
      column.getSQLType() === "text"
        ? `octet_length(${name})`
        : `case when pg_column_compression(${name}) is null then pg_column_size(${name}) else octet_length(${name}::text) end`;
    return `coalesce(${size}, 0)`;
  });
  return sql.raw(sizes.join(" + "));
}

/**
 * Returns columns of a sorted query that decide which rows a statement may read together, as `measuring` does:
 * `before`, the bytes of the rows before a row, and `follows`, whether another row follows.
 */
export function fitting(bytes: SQL, order: SQL): SQL {
  // Both columns use the same window, although `lead` ignores its frame: another window would add a step to the plan.
  const over = sql`over (order by ${order} rows between unbounded preceding and 1 preceding)`;
  return sql`coalesce(sum(${bytes}) ${over}, 0) as before, lead(true, 1, false) ${over} as follows`;
}

/** Condition on the column `before` of `fitting`, true for the rows that the statement may read. */
export const FITS: SQL = sql.raw(`before < ${READ_BYTES}`);

/** A sorted query of a bounded number of rows. */
export interface SortedQuery<Row> extends PromiseLike<Row[]> {
  readonly _: { readonly selectedFields: Readonly<Record<string, unknown>> };
  readonly as: (alias: string) => Subquery;
}

/** The first rows of a query, and whether further rows were omitted. */
export interface FirstRows<Row> {
  readonly rows: Row[];
  readonly isCut: boolean;
}

/**
 * Runs a sorted query and returns its first rows, as many as one statement may read together. `large` contains the
 * selected columns that may be large. `order` is the order of the query, by the names of selected columns.
 */
export async function readFitting<Row>(
  db: DbOrTx,
  query: SortedQuery<Row>,
  { large, order }: { readonly large: readonly PgColumn[]; readonly order: SQL },
): Promise<FirstRows<Row>> {
  const measured = sql`select *, ${fitting(bytesOf("listed", large), order)} from ${query.as("listed")}`;
  const found = await db
    .select({ ...namedAs(query._.selectedFields), follows: sql`follows`.mapWith(Boolean) })
    .from(new Subquery<string>(measured, {}, "listed"))
    .where(FITS)
    .orderBy(order);
  // The cast is safe, because the statement selects the fields of the query.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { rows: found as Row[], isCut: found.at(-1)?.follows === true };
}

/**
 * Selects columns of a subquery by their names. Drizzle's own references to these columns are proxies, which take
 * longer than PostgreSQL takes to read a page.
 */
function namedAs(fields: Readonly<Record<string, unknown>>): Record<string, SQL> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, column]) => {
      if (!is(column, Column)) throw new Error(`${field} is not a column.`);
      return [field, sql`${sql.identifier(column.name)}`.mapWith(column)];
    }),
  );
}
