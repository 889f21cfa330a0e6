import { Column, is, sql, type SQL, Subquery } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { nullable, statement, type Value, value } from "./statement.ts";

/** The bytes of large columns after which a statement reads no further row, so that many large rows fit into memory. */
export const READ_BYTES = 4 * 1024 * 1024;

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

/**
 * The bytes of columns of a row. The size of a text is known without reading it, and that of JSON if it is stored
 * uncompressed, so small values, which are never compressed, cost next to nothing.
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
 * Columns of a sorted query that tell which rows a statement may read together, as `measuring` does: the bytes `before` a
 * row, and whether another one `follows` it.
 */
export function fitting(bytes: SQL, order: SQL): SQL {
  // Both have one window, though `lead` ignores its frame: another window would be another step of the plan.
  const over = sql`over (order by ${order} rows between unbounded preceding and 1 preceding)`;
  return sql`coalesce(sum(${bytes}) ${over}, 0) as before, lead(true, 1, false) ${over} as follows`;
}

/** Whether the statement may read the row of `fitting`. */
export const FITS: SQL = sql.raw(`before < ${READ_BYTES}`);

/** A sorted query of a bounded number of rows. */
export interface SortedQuery<Row> extends PromiseLike<Row[]> {
  readonly _: { readonly selectedFields: Readonly<Record<string, unknown>> };
  readonly as: (alias: string) => Subquery;
}

/** The first rows of a query, and whether rows behind them were left out. */
export interface FirstRows<Row> {
  readonly rows: Row[];
  readonly isCut: boolean;
}

/**
 * Runs a sorted query, and returns those first rows that a statement may read together. `large` are the selected columns
 * that may be large; `order` is that of the query, by names of selected columns.
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
  // The statement selects the fields of the query.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return { rows: found as Row[], isCut: found.at(-1)?.follows === true };
}

/**
 * Selects columns of a subquery by their names. Drizzle's own references to them are proxies, which take longer to read a
 * page than PostgreSQL.
 */
function namedAs(fields: Readonly<Record<string, unknown>>): Record<string, SQL> {
  return Object.fromEntries(
    Object.entries(fields).map(([field, column]) => {
      if (!is(column, Column)) throw new Error(`${field} is not a column.`);
      return [field, sql`${sql.identifier(column.name)}`.mapWith(column)];
    }),
  );
}
