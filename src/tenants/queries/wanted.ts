import { eq, gte, type SQL } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";

import { parseInstant } from "../../lib/clock.ts";

/** Matches the records that changed at an instant or later; all if it is absent. */
export function changedSince(updatedAt: AnyPgColumn, since: string | undefined): SQL | undefined {
  const at = parseInstant(since);
  return at && gte(updatedAt, at);
}

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
