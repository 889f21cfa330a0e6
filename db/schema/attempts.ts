import {
  bigint,
  boolean,
  integer,
  json,
  pgTable,
  primaryKey,
  smallint,
  text,
} from "drizzle-orm/pg-core";

import { bytes, bytewise, instant } from "./columns.ts";

type Headers = Readonly<Record<string, string | string[]>>;

/**
 * One row per POST, never updated. Ids are ULIDs of the start, so a day is a range of ids, and the table is partitioned
 * by it. The last attempt of an entry, delivered or failed, says so itself: it alone has what a redelivery needs of the
 * entry and review_history does not know (payload_mode, batch_job_id, recorded_at).
 */
export const deliveryAttempts = pgTable(
  "delivery_attempts",
  {
    id: bytewise("id").notNull(),
    subscriptionId: bytewise("subscription_id").notNull(),
    sequence: bigint("sequence", { mode: "number" }).notNull(),
    eventId: bytewise("event_id").notNull(),
    event: text("event").notNull(),
    round: smallint("round").notNull(),
    attempt: smallint("attempt").notNull(),
    startedAt: instant("started_at").notNull(),
    durationMs: integer("duration_ms").notNull(),
    outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
    statusCode: smallint("status_code"),
    errorCode: text("error_code"),
    /** Null where they are composed again (`composer`): kept of test events, and of what was sent before that. */
    requestHeaders: json("request_headers").$type<Headers>(),
    requestBody: text("request_body"),
    responseHeaders: json("response_headers").$type<Headers>(),
    responseExcerpt: text("response_excerpt"),
    responseTruncated: boolean("response_truncated").notNull(),
    nextAttemptAt: instant("next_attempt_at"),
    /**
     * A kept connection died without a byte of an answer, and the same request went out once more on a fresh one within
     * the attempt (contract 7.10): the receiver may have got it twice, so the record says so.
     */
    resent: boolean("resent").notNull().default(false),
    /**
     * A dead process may have begun the same attempt, which then has no record: this one says so for it (contract 7.4).
     */
    possiblyRepeated: boolean("possibly_repeated").notNull().default(false),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }),
    batchJobId: bytewise("batch_job_id"),
    recordedAt: instant("recorded_at"),
    /**
     * Which frozen code composes the request again (src/outbox/payload-format.ts), from the history of the event, started_at,
     * attempt and the following: what the `Host` header was, the HMACs, and the first 16 bytes of the SHA-256 of the exact
     * body, without which nothing is shown.
     */
    composer: smallint("composer"),
    host: text("host"),
    signature: bytes("signature"),
    previousSignature: bytes("previous_signature"),
    bodyDigest: bytes("body_digest"),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.id] })],
);

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
