import { pgTable, smallint } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

/** When upkeep last went through the tables. The one row is part of the migration; whoever begins a pass moves it on. */
export const upkeepProgress = pgTable("upkeep_progress", {
  id: smallint("id").primaryKey().default(1),
  passedAt: instant("passed_at").notNull(),
});
