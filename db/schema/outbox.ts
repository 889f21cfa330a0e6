import { boolean, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bigNumber, bytewise, instant, state } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/**
 * The counter of `outbox.sequence`. It is separate from the subscription's row, so that writers that wait for the
 * counter wait for nothing else. A writer locks this row until its commit, which makes the sequence gap-free and in
 * commit order. Deleting the subscription deletes the row, so that nothing can be appended afterwards.
 */
export const outboxSequences = pgTable("outbox_sequences", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => webhookSubscriptions.id),
  lastSequence: bigNumber("last_sequence").notNull().default(0),
  /** The last sequence number of an event in the log. Tests, batches and later rounds have rows in `outbox` instead. */
  lastLogged: bigNumber("last_logged").notNull().default(0),
  /**
   * The last id of review_history up to which a skip dropped the events that wait for a batch. Maintenance deletes
   * their rows in chunks.
   */
  batchSkippedThrough: bigNumber("batch_skipped_through").notNull().default(0),
});

/**
 * Entries outside the log (`review_history.sequence`): tests, batches, later rounds, and events that the offset of the
 * log has passed before they were settled, such as one that waits for a retry. `attempt` is the number of the next
 * POST. An entry that is delivered or fails is deleted with its last attempt (delivery_attempts).
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
     * The row of the event in review_history; null for webhook.test, because its body is composed from this row alone.
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
     * State of the entry. pending: due as soon as the entry is the head of its lane. waiting: due for a retry at
     * due_at. The dispatcher changes state and due_at.
     */
    state: state("pending", "waiting"),
    dueAt: instant("due_at"),
    /**
     * The due time of an entry before this one in its review, if that one waits for a retry. With lanes by review, loads
     * look at this entry no sooner. It is set late or never (`postponeBehind` in db/log.ts), and says nothing about the order.
     */
    behindUntil: instant("behind_until"),
    /**
     * Set if this entry was skipped individually. Entries up to `outbox_offsets.skipped_through` count as skipped
     * without it.
     */
    skippedAt: instant("skipped_at"),
    /** Whether this entry is skipped only until its account is activated again (contract 10.1). */
    isHeld: boolean("is_held").notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.shard, t.subscriptionId, t.sequence] })],
);

/**
 * Events that wait for the next dispatch of a batch subscription. The dispatch takes the rows that it can see, so a
 * row that commits late belongs to the next window. Rows without a row in outbox_sequences belong to a deleted
 * subscription; maintenance deletes them in chunks, which a cascading key could not do.
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
 * A batch that is being dispatched: the waiting events up to `through` become entries, chunk by chunk. The last chunk
 * moves the subscription's cursor (`last_batch_dispatched_at`) to `opened_at` and deletes the row. A skip and the
 * deletion of the subscription delete the row as well.
 */
export const batchWindows = pgTable("batch_windows", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  /** The prefix of the dispatch's job ids. */
  id: bytewise("id").notNull(),
  openedAt: instant("opened_at").notNull(),
  through: bigNumber("through").notNull(),
  /** The low watermark: no waiting event with a smaller id is left, so that no chunk walks over deleted rows. */
  firstId: bigNumber("first_id").notNull().default(0),
  /** The review with which the last chunk ended; its remaining events come next. */
  reviewId: integer("review_id"),
});

/**
 * The committed offset of each subscription. The table is separate because a writer locks the row of
 * `outbox_sequences` until its commit, and the dispatcher would wait for it.
 */
export const outboxOffsets = pgTable("outbox_offsets", {
  subscriptionId: bytewise("subscription_id").primaryKey(),
  /** Every event of the log up to this sequence is settled, or has a row in `outbox`. */
  settledThrough: bigNumber("settled_through").notNull().default(0),
  /** The skip watermark: every entry up to this sequence that was not settled by an attempt is skipped. */
  skippedThrough: bigNumber("skipped_through").notNull().default(0),
  /**
   * Counts the transactions that erased or deleted events of the partner (contract 10.8). An attempt record has the number
   * of the load that its event was read by. If they differ at the commit, the event may have been erased meanwhile.
   */
  erasures: integer("erasures").notNull().default(0),
});

/**
 * The ranges of skips: the events of the log from `first` to `last`, and the rows of `outbox` up to `last` that no
 * earlier skip covers. Events that were under way at the skip and were delivered are between two ranges. A range may be
 * empty (`first` is `last` + 1).
 */
export const outboxSkips = pgTable(
  "outbox_skips",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    first: bigNumber("first").notNull(),
    last: bigNumber("last").notNull(),
    reason: text("reason", { enum: ["deleted", "expired", "skipped"] }).notNull(),
    /** The number of skipped entries; null if they were not counted. Expired entries are counted. */
    entries: integer("entries"),
    skippedAt: instant("skipped_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.last] })],
);

/**
 * The progress of a subscription's recoveries (contract 6.15), so that a call does not repeat the work of earlier
 * calls. Each event recorded since `since`, up to `through_at` and `through_id`, was settled or queued. The row is
 * valid for a later call if its window does not begin earlier, its events are the same and nothing was skipped since.
 * Events that failed since then are checked by each call.
 */
export const recoveries = pgTable("recoveries", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  since: instant("since").notNull(),
  events: text("events").array().notNull(),
  throughAt: instant("through_at").notNull(),
  /** The id of an event in `review_history`; it orders events that were recorded at the same instant. */
  throughId: bigNumber("through_id").notNull(),
  /** The skip watermarks of `outbox_offsets` and `outbox_sequences` when this row was written. */
  skippedThrough: bigNumber("skipped_through").notNull(),
  batchSkippedThrough: bigNumber("batch_skipped_through").notNull(),
});
