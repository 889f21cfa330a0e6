import { bigint, boolean, integer, pgTable, smallint, text } from "drizzle-orm/pg-core";

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
export const shards = pgTable("shards", {
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
});

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

/**
 * A row for each API and each dispatcher that runs, with the master keys that it has, so that `rotate-master` can see a
 * process that would open nothing afterwards. The process renews `seen_at`, and deletes the row when it stops; the row of
 * a killed process expires (`src/master-key.ts`). Processes of versions before this table have none.
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
