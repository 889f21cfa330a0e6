import { bigint, customType, integer, timestamp } from "drizzle-orm/pg-core";

// The columns that many tables have.
//
// The schema declares columns, keys and unique indexes. All other indexes, with their reasons, are in db/migrations alone.

export const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });

export const id = () => integer("id").primaryKey().generatedAlwaysAsIdentity();

export const bigid = () =>
  bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity();

/** Text that is ordered as bytes, as ULIDs must be; the builder has no word for a collation. */
export const bytewise = customType<{ data: string }>({ dataType: () => 'text collate "C"' });

/** Bytes as they are; the builder has no word for them. */
export const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });
