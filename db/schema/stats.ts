import { integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";

/**
 * Attempts counted per five minutes, per hour and per day, by outcome and duration: the charts and the stats of a day are
 * made from few of these rows and the attempts since. A maintenance job fills them after the fact, so that the
 * dispatcher pays nothing.
 */
export const attemptStats = pgTable(
  "attempt_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    /** How long the bucket is: an hour is summed from its five minutes, a day from its hours. */
    stepS: integer("step_s").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
    /** Which bins of duration_ms occurred, and how often each: src/webhooks/stats.ts says what a bin spans. */
    bins: smallint("bins").array().notNull(),
    counts: integer("counts").array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.stepS, t.bucketAt, t.outcome] })],
);

/** The unsettled entries of a subscription at the end of a bucket; no row if there were none. */
export const backlogStats = pgTable(
  "backlog_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    entries: integer("entries").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.bucketAt] })],
);

/** How far that job has come: later attempts are counted where they stand. One row. */
export const statsProgress = pgTable("stats_progress", {
  id: smallint("id").primaryKey().default(1),
  countedUntil: instant("counted_until").notNull(),
});
