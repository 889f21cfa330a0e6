import { bigint, integer, pgTable, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/**
 * The jobs of the maintenance loop (dispatcher/maintenance/loop.ts): what each did last, and which process runs it now.
 * A migration adds the row of a job; one that the settings turn off has a row, too.
 */
export const maintenanceJobs = pgTable("maintenance_jobs", {
  name: bytewise("name").primaryKey(),
  nextAt: instant("next_at").notNull(),
  /** When the last run began, whatever came of it. */
  beganAt: instant("began_at"),
  succeededAt: instant("succeeded_at"),
  /** How long the last run took. */
  durationMs: integer("duration_ms"),
  /** Handled by the last run, or so far by the present one. */
  rows: bigint("rows", { mode: "number" }).notNull().default(0),
  /** Where the next chunk of an unfinished run goes on. */
  reached: text("reached"),
  /** Failed runs since the last success, and the error of the last of them. */
  failures: integer("failures").notNull().default(0),
  lastError: text("last_error"),
  /** The process that runs the job. Another one takes over once the lease has ended. */
  holder: text("holder"),
  leasedUntil: instant("leased_until"),
});
