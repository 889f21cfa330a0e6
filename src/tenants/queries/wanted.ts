import { eq, type SQL } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";

/** New values of columns; undefined ones keep their values. */
export type Changes<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** A record, named by its id or by the id that the platform gave it. */
export type Wanted = { readonly id: number } | { readonly externalId: string };

/** Matches the record of a table that is named. */
export function isWanted(
  table: Readonly<Record<"id" | "externalId", AnyPgColumn>>,
  wanted: Wanted,
): SQL {
  return "id" in wanted ? eq(table.id, wanted.id) : eq(table.externalId, wanted.externalId);
}
