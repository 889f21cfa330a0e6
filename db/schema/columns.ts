import type { SQL } from "drizzle-orm";
import { bigint, customType, integer, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";

// Column types that many tables share.
//
// The schema declares columns, keys and unique indexes. All other indexes, with their reasons, are in custom migrations
// (db/migrations/0001_rules).

export const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });

export const id = () => integer("id").primaryKey().generatedAlwaysAsIdentity();

/** A bigint that JavaScript reads as a number; ids and sequences stay far below 2^53. */
export const bigNumber = (name: string) => bigint(name, { mode: "number" });

export const bigid = () => bigNumber("id").primaryKey().generatedAlwaysAsIdentity();

/** Text that is ordered by bytes, which ULIDs require. The query builder cannot declare a collation. */
export const bytewise = customType<{ data: string }>({ dataType: () => 'text collate "C"' });

/** Raw bytes. The query builder has no type for them. */
export const bytes = customType<{ data: Uint8Array }>({ dataType: () => "bytea" });

/** The state of a row. The first state is the default. */
export const state = <S extends string>(...states: [S, ...S[]]) =>
  text("state", { enum: states }).notNull().default(states[0]);

/** The times at which a row was created and last changed. */
export const timestamps = () => ({
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/** A unique index over the rows that meet a condition. */
export const uniqueWhere = (
  name: string,
  condition: SQL,
  ...columns: Parameters<ReturnType<typeof uniqueIndex>["on"]>
) =>
  uniqueIndex(name)
    .on(...columns)
    .where(condition);
