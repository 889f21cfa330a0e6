import { boolean, integer, jsonb, pgTable, smallint, text } from "drizzle-orm/pg-core";

import { bigNumber, bytewise, instant } from "./columns.ts";

/** A quarantined lane in its stored form (src/outbox/quarantined-lane.ts). */
interface QuarantinedLane {
  readonly subscription_id: string;
  readonly reason:
    | "history_missing"
    | "unreadable"
    | "unrecordable"
    | "secret_unreadable"
    | "locked";
  readonly event_id: string | null;
  readonly sequence: number | null;
  readonly review_id: number | null;
  readonly since: string;
}

/**
 * The leases of dispatchers. A lease is live while its process renews it. Each renewal increases `renewed_at`, even if
 * the database clock does not advance. Other dispatchers only observe that the value changed, and measure the time
 * since then with their own clocks.
 *
 * The dispatcher that expires a lease deletes its row. Every write of a dispatcher first locks the dispatcher's own
 * row. So a dispatcher whose lease was expired cannot write any more.
 */
export const dispatchers = pgTable("dispatchers", {
  id: bytewise("id").primaryKey(),
  startedAt: instant("started_at").notNull(),
  renewedAt: instant("renewed_at").notNull(),
  /**
   * The resident memory of the process in MB at its last renewal; null for an older version, which does not report it.
   */
  memoryMb: integer("memory_mb"),
  /**
   * The component of the operator's own network that prevents the dispatcher from reaching receivers
   * (dispatcher/http/failure.ts), and the start of this outage. Null without an outage (contract 7.8).
   */
  outage: text("outage"),
  outageSince: instant("outage_since"),
  /** The lanes that were quarantined at the last renewal, because of a failure of this service (contract 10.4). */
  quarantined: jsonb("quarantined").$type<readonly QuarantinedLane[]>().notNull().default([]),
});

/** The 64 shards of all subscriptions, each with the dispatcher that holds it. A migration has inserted the rows. */
export const shards = pgTable("shards", {
  id: smallint("id").primaryKey(),
  dispatcherId: bytewise("dispatcher_id").references(() => dispatchers.id, {
    onDelete: "set null",
  }),
  /** The number of claims of the shard; each new holder increments it. */
  epoch: bigNumber("epoch").notNull().default(0),
  /**
   * Set if the lease of the holder was expired: the holder may have sent the first entries of its lanes without storing
   * the attempts. Cleared when a later holder has sent these entries again and releases the shard cleanly.
   */
  unclean: boolean("unclean").notNull().default(false),
});

/**
 * The jobs of the maintenance loop (dispatcher/maintenance/loop.ts): the last run of each job, and the process that is
 * running it. A migration inserts the row of a job. A job that a setting disables has a row, too.
 */
export const maintenanceJobs = pgTable("maintenance_jobs", {
  name: bytewise("name").primaryKey(),
  nextAt: instant("next_at").notNull(),
  /** The start of the last run, whether or not the run succeeded. */
  beganAt: instant("began_at"),
  succeededAt: instant("succeeded_at"),
  durationMs: integer("duration_ms"),
  /** The number of rows that the last run has processed, or the current run so far. */
  rows: bigNumber("rows").notNull().default(0),
  /** The position at which the next chunk of an unfinished run continues. */
  reached: text("reached"),
  /** The number of failed runs since the last success, and the error of the last failed run. */
  failures: integer("failures").notNull().default(0),
  lastError: text("last_error"),
  /** The process that runs the job. Another process takes over after the lease has expired. */
  holder: text("holder"),
  leasedUntil: instant("leased_until"),
});

/**
 * The running APIs and dispatchers with the ids of their master keys. `rotate-master` uses them to find a process that
 * could not open any secret after the rotation. A process renews `seen_at`, and deletes its row when it stops; the row
 * of a killed process expires (`src/master-key.ts`). Processes of versions before this table have no rows.
 */
export const processes = pgTable("processes", {
  id: bytewise("id").primaryKey(),
  role: text("role", { enum: ["api", "dispatcher"] }).notNull(),
  host: text("host").notNull(),
  pid: integer("pid").notNull(),
  /** Ids of the master keys of the process, as they occur in sealed values. The first key seals new values. */
  masterKeys: text("master_keys").array().notNull(),
  seenAt: instant("seen_at").notNull(),
});
