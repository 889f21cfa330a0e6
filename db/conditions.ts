import { desc, eq, type GetColumnData, sql, type SQL, type SQLWrapper } from "drizzle-orm";
import { alias, type PgColumn, type PgTable } from "drizzle-orm/pg-core";

import type { DbOrTx } from "./client.ts";
import { deliveryAttempts } from "./schema/attempts.ts";
import { companies, users } from "./schema/companies.ts";

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

/** A subselect of the builder that has one column. */
interface OneColumn<T> extends SQLWrapper {
  readonly _: { readonly result: readonly Readonly<Record<string, T>>[] };
}

/** What a subselect finds, as a list. */
export function arrayOf<T>(subselect: OneColumn<T>): SQL<T[]> {
  return sql`array${subselect}`.mapWith((values: T[]) => values);
}

// What is asked of attempts, in the forms that their indexes know.

/** Attempts of an event. Their index knows the beginning of an event's id: its time and 25 random bits. */
export function isAttemptOf(eventId: SQLWrapper, wanted: SQLWrapper): SQL {
  return sql`${eventId} = ${wanted} and left(${eventId}, 15) = left(${wanted}, 15)`;
}

/** What finds a subscription's attempts of an event value on a day that has ended, beside the two themselves. */
export function hashOfValue(subscriptionId: string, event: SQL): SQL {
  const { subscriptionId: ownId, event: ownEvent } = deliveryAttempts;
  const wanted = sql`hashtext(${subscriptionId}::text || ${event})`;
  return sql`hashtext(${ownId} || ${ownEvent}) = ${wanted}`;
}

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

/** The partner above an account; a join to it is a left join, because other companies have none. */
export const partners = alias(companies, "partners");

export const isPartnerOfCompany = eq(partners.id, companies.partnerId);

/** The company and the partner above it are active: nobody of them signs in otherwise. */
export const isTenantActive =
  sql`(${companies.isActive} and coalesce(${partners.isActive}, true))`.mapWith(companies.isActive);

/** The same of a user of the company. */
export const isUserActive = sql`(${users.isActive} and ${isTenantActive})`.mapWith(users.isActive);
