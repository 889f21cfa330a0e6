import { and, desc, eq, type GetColumnData, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { deliveryAttempts } from "./schema/attempts.ts";
import { companies, users } from "./schema/companies.ts";

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
 * Matches a column against the rows of a query with a limit, which runs once. With `inArray` the planner may run the
 * query again for every row, so that the limit holds for each run instead of for the statement.
 */
export function anyOfQuery(column: PgColumn, query: SQLWrapper): SQL {
  return sql`${column} = any(array(${query}))`;
}

/**
 * Matches rows after a cursor, in ascending order of ids. The cursor is compared as bigint, because it may exceed the
 * column's type.
 */
export function idAfter(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} > ${cursor}::bigint`;
}

/** Matches rows after a cursor, in descending order of ids. */
export function idBefore(column: PgColumn, cursor: string | undefined): SQL | undefined {
  return cursor === undefined ? undefined : sql`${column} < ${cursor}::bigint`;
}

/**
 * Matches rows after a cursor, the newest first and rows of one instant in descending order of ids. The cursor is the
 * instant in ms and the id, separated by a dot.
 */
export const instantBefore = beyondInstant(sql`<`);

/** Like `instantBefore`, but the oldest first and rows of one instant in ascending order of ids. */
export const instantAfter = beyondInstant(sql`>`);

function beyondInstant(operator: SQL) {
  return (at: PgColumn, id: PgColumn, cursor: string | undefined): SQL | undefined => {
    if (cursor === undefined) return undefined;
    const dot = cursor.indexOf(".");
    const [ms, last] = [cursor.slice(0, dot), cursor.slice(dot + 1)];
    // The instant is not converted to a Date, because no driver writes years above 9999 in the way that Postgres reads
    // them.
    const instant = sql`to_timestamp(${ms}::text::bigint / 1000.0)::timestamptz(3)`;
    return sql`(${at}, ${id}) ${operator} (${instant}, ${last})`;
  };
}

/** Matches rows in which one of the columns contains the text, ignoring case. No index supports this search. */
export function someHas(columns: readonly PgColumn[], wanted: string): SQL {
  const texts = sql.join([...columns], sql`, `);
  return sql`position(lower(${wanted}) in lower(concat_ws(E'\\n', ${texts}))) > 0`;
}

/** A Drizzle subselect with exactly one column. */
interface OneColumn<T> extends SQLWrapper {
  readonly _: { readonly result: readonly Readonly<Record<string, T>>[] };
}

/** Converts a subselect into a PostgreSQL array of the selected values. */
export function arrayOf<T>(subselect: OneColumn<T>): SQL<T[]> {
  return sql`array${subselect}`.mapWith((values: T[]) => values);
}

// The following conditions on delivery attempts have the form that the indexes of the table require.

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
 * Matches the hash of subscription id and event value that the index of ended days contains. Different values may
 * have the same hash, so the caller also compares both values.
 */
export function hashOfValue(subscriptionId: string, event: SQL): SQL {
  const { subscriptionId: ownId, event: ownEvent } = deliveryAttempts;
  const wanted = sql`hashtext(${subscriptionId}::text || ${event})`;
  return sql`hashtext(${ownId} || ${ownEvent}) = ${wanted}`;
}

/**
 * Returns the id of the nth newest matching row; undefined if there are fewer rows. A search that may read n rows
 * ends at this id.
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

/** The company of the partner above an account. Join it with a left join, because other companies have no partner. */
export const partners = alias(companies, "partners");

export const isPartnerOfCompany = eq(partners.id, companies.partnerId);

/** The names of a company and of its partner. The query joins `partners` by `isPartnerOfCompany`. */
export const companyNames = {
  companyName: companies.name,
  companyBrand: companies.brandName,
  partnerName: partners.name,
  partnerBrand: partners.brandName,
};

/** Whether the company and the partner above it are active; otherwise none of their users can sign in. */
export const isTenantActive =
  sql`(${companies.isActive} and coalesce(${partners.isActive}, true))`.mapWith(companies.isActive);

/** Whether a user, the company and the partner above it are active. */
export const isUserActive = sql`(${users.isActive} and ${isTenantActive})`.mapWith(users.isActive);
