import { bigint, boolean, index, integer, pgTable, smallint } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/**
 * A row is a lease: it lives while its process renews it. Each renewal moves `renewed_at` on, whatever the clock of this
 * database does; others only see that it moved, and how long it did not they measure themselves. Whoever takes over
 * deletes the row of the dead, and every write of a dispatcher first locks its own row: a process that was declared dead
 * can write nothing more.
 */
export const dispatchers = pgTable("dispatchers", {
  id: bytewise("id").primaryKey(),
  startedAt: instant("started_at").notNull(),
  renewedAt: instant("renewed_at").notNull(),
  /** The resident memory of the process, told with each renewal; null of one that is older than the column. */
  memoryMb: integer("memory_mb"),
});

/** The 64 rows are part of the migration. */
export const shards = pgTable(
  "shards",
  {
    id: smallint("id").primaryKey(),
    dispatcherId: bytewise("dispatcher_id").references(() => dispatchers.id, {
      onDelete: "set null",
    }),
    /** Counts the owners that this shard has had. */
    epoch: bigint("epoch", { mode: "number" }).notNull().default(0),
    /**
     * Its holder was declared dead, and may have sent the first entries of its lanes without a record. Cleared when a
     * later holder, who has repeated them, gives it up in good order.
     */
    orphaned: boolean("orphaned").notNull().default(false),
  },
  (t) => [index("shards_dispatcher").on(t.dispatcherId)],
);
