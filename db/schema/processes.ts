import { integer, pgTable, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/**
 * A row for each API and each dispatcher that runs, with the master keys that it has, so that `rotate-master` can see a
 * process that would open nothing afterwards. The process renews `seen_at`, and deletes the row when it stops; the row of
 * a killed process expires (`src/outbox/master-key.ts`). Processes of versions before this table have none.
 */
export const processes = pgTable("processes", {
  id: bytewise("id").primaryKey(),
  role: text("role", { enum: ["api", "dispatcher"] }).notNull(),
  host: text("host").notNull(),
  pid: integer("pid").notNull(),
  /** Ids of keys, as they stand in sealed values; the first one seals. */
  masterKeys: text("master_keys").array().notNull(),
  seenAt: instant("seen_at").notNull(),
});
