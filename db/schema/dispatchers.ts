import { sql } from "drizzle-orm";
import { bigint, check, index, pgTable, smallint } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/**
 * A row is a lease: it lives while its process renews `renewed_at`, on the clock of this database. Whoever takes over
 * deletes the row of the dead, and every write of a dispatcher first locks its own row: a process that was declared dead
 * can write nothing more.
 */
export const dispatchers = pgTable("dispatchers", {
  id: bytewise("id").primaryKey(),
  startedAt: instant("started_at").notNull(),
  renewedAt: instant("renewed_at").notNull(),
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
  },
  (t) => [
    index("shards_dispatcher").on(t.dispatcherId),
    check("shards_id_check", sql`id between 0 and 63`),
  ],
);
