import { and, desc, type GetColumnData, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { deliveryAttempts } from "./schema/attempts.ts";

/**
 * Matches a column against a list, like Drizzle's `inArray`. The list is one array parameter, so that the statement
 * text is the same for any number of values.
 */
export function anyOf<C extends PgColumn>(
  column: C,
  values: Iterable<NonNullable<GetColumnData<C>>>,
): SQL {
  return sql`${column} = any(${sql.param([...values])})`;
}

/**
 * Matches a column against the rows of a query with a limit, which runs once. With `inArray`, the planner could run the
 * query again for every row, and the limit would apply to each run instead of to the statement.
 */
export function anyOfQuery(column: PgColumn, query: SQLWrapper): SQL {
  return sql`${column} = any(array(${query}))`;
}

/**
 * Matches rows after a cursor, in ascending order of ids. The cursor is compared as bigint, because it may exceed the
 * range of the column's type.
 */
export function idAfter(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} > ${cursor}::bigint`;
}

/** Matches rows after a cursor, in descending order of ids. */
export function idBefore(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} < ${cursor}::bigint`;
}

/**
 * Matches rows after a cursor, in descending order of instants and, within an instant, of ids. The cursor consists of
 * the instant in ms and the id, separated by a dot.
 */
export const instantBefore = beyondInstant(sql`<`);

/** Like `instantBefore`, but in ascending order of instants and ids. */
export const instantAfter = beyondInstant(sql`>`);

function beyondInstant(operator: SQL) {
  return (at: PgColumn, id: PgColumn, cursor: string | undefined): SQL | undefined => {
    if (cursor === undefined) return undefined;
    const dot = cursor.indexOf(".");
    const [ms, last] = [cursor.slice(0, dot), cursor.slice(dot + 1)];
    // The instant is not converted to a Date, because drivers write years above 9999 in a form that PostgreSQL does not
    // accept.
    const instant = sql`to_timestamp(${ms}::text::bigint / 1000.0)::timestamptz(3)`;
    return sql`(${at}, ${id}) ${operator} (${instant}, ${last})`;
  };
}

/** Matches rows in which one of the columns contains the text, ignoring case. No index supports this search. */
export function someHas(columns: readonly SQLWrapper[], wanted: string): SQL {
  const texts = sql.join([...columns], sql`, `);
  return sql`position(lower(${wanted}) in lower(concat_ws(E'\\n', ${texts}))) > 0`;
}

/** A Drizzle subselect with exactly one column. */
interface OneColumn<T> extends SQLWrapper {
  readonly _: { readonly result: readonly Readonly<Record<string, T>>[] };
}

/** Converts a subselect into a PostgreSQL array of its values. */
export function arrayOf<T>(subselect: OneColumn<T>): SQL<T[]> {
  return sql`array${subselect}`.mapWith((values: T[]) => values);
}

// The following conditions on delivery attempts are written in the form that the indexes of the table require.

/**
 * Matches the attempts of an event. Their index contains the first 15 characters of the event id: its time and 25
 * random bits.
 */
export function isAttemptOf(eventId: SQLWrapper, wanted: SQLWrapper): SQL {
  return sql`${eventId} = ${wanted} and left(${eventId}, 15) = left(${wanted}, 15)`;
}

/** Matches the attempts of these events (`isAttemptOf`). */
export function isAttemptOfAny(eventIds: readonly string[]): SQL | undefined {
  const { eventId } = deliveryAttempts;
  const prefixes = eventIds.map((one) => one.slice(0, 15));
  return and(anyOf(eventId, eventIds), sql`left(${eventId}, 15) = any(${sql.param(prefixes)})`);
}

/**
 * Returns the id of the nth newest matching row; undefined if there are fewer rows. A search that may read at most n
 * rows ends at this id.
 */
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
