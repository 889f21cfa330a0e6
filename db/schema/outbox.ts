import { bigint, boolean, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/**
 * The counter behind `outbox.sequence`, apart from the subscription, so that the writers who queue on it do not queue on
 * anything else. Whoever appends holds this row until the commit, which makes the sequence gap-free and in commit
 * order; deleting the subscription deletes the row, after which nothing can be appended any more.
 */
export const outboxSequences = pgTable("outbox_sequences", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => webhookSubscriptions.id),
  lastSequence: bigint("last_sequence", { mode: "number" }).notNull().default(0),
  /** The last number that went to an event of the log; those of tests, batches and later rounds have rows in `outbox`. */
  lastLogged: bigint("last_logged", { mode: "number" }).notNull().default(0),
  /** A skip has dropped what waits for a batch up to this id of review_history; maintenance deletes these rows in chunks. */
  batchSkippedThrough: bigint("batch_skipped_through", { mode: "number" }).notNull().default(0),
});

/** The columns of an entry, in the table and in the views. */
const entry = {
  subscriptionId: bytewise("subscription_id").notNull(),
  sequence: bigint("sequence", { mode: "number" }).notNull(),
  eventId: bytewise("event_id").notNull(),
  event: text("event").notNull(),
  payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
  /** Null for webhook.test, whose body follows from this row alone. */
  reviewHistoryId: bigint("review_history_id", { mode: "number" }),
  reviewId: integer("review_id"),
  batchJobId: bytewise("batch_job_id"),
  isTest: boolean("is_test").notNull().default(false),
  round: smallint("round").notNull().default(1),
  recordedAt: instant("recorded_at").notNull(),
};

/**
 * Entries that are not in the log (`review_history.sequence`): tests, batches, later rounds, and what the offset of the
 * log has passed before it was settled, for example an entry that waits for a retry. `attempt` is the number that the
 * next POST carries. An entry that is delivered or fails leaves with its last attempt (delivery_attempts).
 */
export const outbox = pgTable(
  "outbox",
  {
    ...entry,
    shard: smallint("shard").notNull(),
    attempt: smallint("attempt").notNull().default(1),
    /** pending: due as soon as it is the head of its lane. waiting: for a retry at due_at. The dispatcher moves both on. */
    state: text("state", { enum: ["pending", "waiting"] })
      .notNull()
      .default("pending"),
    dueAt: instant("due_at"),
    /** It was skipped by itself; entries up to `skipped_through` of the offset are skipped without this. */
    skippedAt: instant("skipped_at"),
  },
  (t) => [primaryKey({ columns: [t.shard, t.subscriptionId, t.sequence] })],
);

/**
 * Events that wait for the next dispatch of a batch subscription. The dispatch takes the rows that it can see and leaves
 * the rest, so a row that commits late falls into the next window by itself. Rows without a row in outbox_sequences belong
 * to a deleted subscription: maintenance deletes them in chunks, which a cascading key could not.
 */
export const batchEntries = pgTable(
  "batch_entries",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    reviewHistoryId: bigint("review_history_id", { mode: "number" }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.reviewHistoryId] })],
);

/**
 * A batch that is being dispatched: the waiting events up to `through` become entries, chunk by chunk. The last chunk
 * moves the cursor to `opened_at` and deletes the row; a delete of the subscription and a skip delete it, too.
 */
export const batchWindows = pgTable("batch_windows", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  /** The jobs of the dispatch are named after it. */
  id: bytewise("id").notNull(),
  openedAt: instant("opened_at").notNull(),
  through: bigint("through", { mode: "number" }).notNull(),
  /** How far it is. No event below this one is left, so that no chunk walks over what others have deleted. */
  firstId: bigint("first_id", { mode: "number" }).notNull().default(0),
  /** Whose events the last chunk ended with: those that are left of it come next. */
  reviewId: integer("review_id"),
});

/**
 * The committed offset of each subscription. It has a table of its own because a writer locks the row of
 * `outbox_sequences` until its commit, and the dispatcher would wait for that.
 */
export const outboxOffsets = pgTable("outbox_offsets", {
  subscriptionId: bytewise("subscription_id").primaryKey(),
  /** Every event of the log up to this sequence is settled, or has a row in `outbox`. */
  settledThrough: bigint("settled_through", { mode: "number" }).notNull().default(0),
  /** Every entry up to this sequence that was not settled by an attempt is skipped. */
  skippedThrough: bigint("skipped_through", { mode: "number" }).notNull().default(0),
});

/**
 * What was skipped together: the events of the log from `first` to `last`, and all rows of `outbox` up to `last` that
 * no earlier skip covers.
 */
export const outboxSkips = pgTable(
  "outbox_skips",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    first: bigint("first", { mode: "number" }).notNull(),
    last: bigint("last", { mode: "number" }).notNull(),
    reason: text("reason", { enum: ["deleted", "expired", "skipped"] }).notNull(),
    /** How many entries, where they were counted: of those that expired. */
    entries: integer("entries"),
    skippedAt: instant("skipped_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.last] })],
);

/**
 * How far the recoveries of a subscription have come (contract 6.15), so that a call does not look again at what the calls
 * before it have queued: of the events recorded since `since`, each up to `through_at` and `through_id` was settled or
 * queued. It counts while the window begins no earlier, the events asked for are the same and nothing was skipped; of what
 * has failed since, each call looks again.
 */
export const recoveries = pgTable("recoveries", {
  subscriptionId: bytewise("subscription_id")
    .primaryKey()
    .references(() => outboxSequences.subscriptionId, { onDelete: "cascade" }),
  since: instant("since").notNull(),
  events: text("events").array().notNull(),
  throughAt: instant("through_at").notNull(),
  /** An id of review_history. */
  throughId: bigint("through_id", { mode: "number" }).notNull(),
  /** As they were in `outbox_offsets` and `outbox_sequences`. */
  skippedThrough: bigint("skipped_through", { mode: "number" }).notNull(),
  batchSkippedThrough: bigint("batch_skipped_through", { mode: "number" }).notNull(),
});
