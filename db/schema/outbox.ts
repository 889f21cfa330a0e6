import { boolean, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bigNumber, bytewise, instant, state } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/**
 * The counter of `outbox.sequence`. It is separate from the subscription's row, so that writers that wait for the
 * counter wait for nothing else. A writer locks this row until its commit, so the sequence has no gaps and follows the
 * order of commits. Deleting the subscription deletes the row, so that nothing can be appended afterwards.
 */
export const outboxSequences = pgTable("outbox_sequences", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => webhookSubscriptions.id),
  lastSequence: bigNumber("last_sequence").notNull().default(0),
  /** The last sequence number of an event in the log. Tests, batches and later rounds have rows in `outbox` instead. */
  lastLogged: bigNumber("last_logged").notNull().default(0),
  /** How many numbers up to `last_logged` belong to no event of the log. */
  unlogged: bigNumber("unlogged").notNull().default(0),
  /**
   * The id of review_history up to which a skip has dropped the events that wait for a batch. Maintenance deletes their
   * rows in `batch_entries` in chunks.
   */
  batchSkippedThrough: bigNumber("batch_skipped_through").notNull().default(0),
});

/**
 * Entries outside the log (`review_history.sequence`): tests, batches, later rounds, and events that the offset of the
 * log has passed before they were delivered, failed or skipped, for example an event that waits for a retry. `attempt`
 * is the number of the next POST. A delivered or failed entry is deleted by the transaction that stores its last
 * attempt (delivery_attempts).
 */
export const outbox = pgTable(
  "outbox",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    sequence: bigNumber("sequence").notNull(),
    eventId: bytewise("event_id").notNull(),
    event: text("event").notNull(),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
    /**
     * The row of the event in review_history. Null for webhook.test, because its body is composed from the row of
     * `outbox` alone.
     */
    reviewHistoryId: bigNumber("review_history_id"),
    reviewId: integer("review_id"),
    batchJobId: bytewise("batch_job_id"),
    isTest: boolean("is_test").notNull().default(false),
    round: smallint("round").notNull().default(1),
    recordedAt: instant("recorded_at").notNull(),
    shard: smallint("shard").notNull(),
    attempt: smallint("attempt").notNull().default(1),
    /**
     * State of the entry. pending: due as soon as it is the first entry of its lane. waiting: due for a retry at
     * due_at. The dispatcher changes state and due_at, and the API makes a retry due at once (contract 6.14).
     */
    state: state("pending", "waiting"),
    dueAt: instant("due_at"),
    /**
     * The due time of an earlier entry of the same review that waits for a retry. With lanes by review, loads ignore
     * this entry until that time. The value is set late or never (`postponeBehind` in db/log.ts), so the order of
     * entries does not depend on it.
     */
    behindUntil: instant("behind_until"),
    /**
     * Set if this entry was skipped individually. Entries up to `outbox_offsets.skipped_through` are skipped without
     * it.
     */
    skippedAt: instant("skipped_at"),
    /** Whether this entry is skipped only until its account is activated again (contract 10.1). */
    isHeld: boolean("is_held").notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.shard, t.subscriptionId, t.sequence] })],
);

/**
 * Events that wait until their batch subscription is due (`next_batch_at`). They then become entries in chunks. Each
 * chunk takes the rows that it can see, so a row that commits too late belongs to the next batch. If a subscription has
 * no row in outbox_sequences, it was deleted; maintenance then deletes its rows in `batch_entries` in chunks, which a
 * cascading foreign key could not do.
 */
export const batchEntries = pgTable(
  "batch_entries",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    reviewHistoryId: bigNumber("review_history_id").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.reviewHistoryId] })],
);

/**
 * A batch whose events become entries, chunk by chunk: the waiting events up to `through`. The last chunk sets the
 * subscription's cursor (`last_batch_dispatched_at`) to `opened_at` and deletes the row. A skip, or the deletion of the
 * subscription, also deletes the row.
 */
export const batchWindows = pgTable("batch_windows", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  /** The prefix of the `batch_job_id`s of the batch. */
  id: bytewise("id").notNull(),
  openedAt: instant("opened_at").notNull(),
  through: bigNumber("through").notNull(),
  /**
   * The low watermark: chunks read from this id on, because no waiting event has a smaller id. So they do not scan
   * deleted rows.
   */
  firstId: bigNumber("first_id").notNull().default(0),
  /** The review with which the last chunk ended. Its other events come first in the next chunk. */
  reviewId: integer("review_id"),
});

/**
 * The committed offset of each subscription. It is a separate table because a writer locks the row of
 * `outbox_sequences` until its commit, and the dispatcher would have to wait for it.
 */
export const outboxOffsets = pgTable("outbox_offsets", {
  subscriptionId: bytewise("subscription_id").primaryKey(),
  /** Every event of the log up to this sequence is delivered, failed or skipped, or has a row in `outbox`. */
  settledThrough: bigNumber("settled_through").notNull().default(0),
  /** The skip watermark. Every entry up to this sequence is skipped, unless it was delivered or failed. */
  skippedThrough: bigNumber("skipped_through").notNull().default(0),
  /**
   * Number of transactions that erased or deleted events of the partner (contract 10.8). A load reads this number with
   * an event. If the number differs when an attempt is committed, the event may have been erased since its load.
   */
  erasures: integer("erasures").notNull().default(0),
});

/**
 * The ranges of skips: the events of the log from `first` to `last`, and the rows of `outbox` up to `last` that no
 * earlier skip covers. Events that were in flight during the skip and were delivered are between two ranges. A range
 * may be empty (`first` is `last` + 1).
 */
export const outboxSkips = pgTable(
  "outbox_skips",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    first: bigNumber("first").notNull(),
    last: bigNumber("last").notNull(),
    reason: text("reason", { enum: ["deleted", "expired", "skipped"] }).notNull(),
    /** The number of skipped entries; null if they were not counted. Expired entries are counted, too. */
    entries: integer("entries"),
    skippedAt: instant("skipped_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.last] })],
);

/**
 * The progress of a subscription's recoveries (contract 6.15), so that a call does not repeat the work of earlier
 * calls. Each event that was recorded from `since` up to `through_at` and `through_id` was queued, delivered, failed or
 * skipped. The row is valid for a later call whose window does not begin before `since`, if that call asks for the same
 * events and nothing was skipped since the row was written. Each call looks again at the events that have failed.
 */
export const recoveries = pgTable("recoveries", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  since: instant("since").notNull(),
  events: text("events").array().notNull(),
  throughAt: instant("through_at").notNull(),
  /** The id of an event in `review_history`, to order events that were recorded at the same instant. */
  throughId: bigNumber("through_id").notNull(),
  /** The skip watermarks of `outbox_offsets` and `outbox_sequences` when this row was written. */
  skippedThrough: bigNumber("skipped_through").notNull(),
  batchSkippedThrough: bigNumber("batch_skipped_through").notNull(),
});
