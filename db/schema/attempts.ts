import { boolean, integer, json, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bigNumber, bytes, bytewise, instant } from "./columns.ts";

type Headers = Readonly<Record<string, string | string[]>>;

/**
 * One row per POST to a receiver. Only an erasure changes a row (contract 10.8). Ids are ULIDs with the start time of
 * the POST, so a day is a range of ids, by which the table is partitioned. The last attempt of an entry, delivered or
 * failed, also stores the data of the entry that a redelivery needs and that review_history lacks: payload_mode,
 * batch_job_id and recorded_at.
 */
export const deliveryAttempts = pgTable(
  "delivery_attempts",
  {
    id: bytewise("id").notNull(),
    subscriptionId: bytewise("subscription_id").notNull(),
    sequence: bigNumber("sequence").notNull(),
    eventId: bytewise("event_id").notNull(),
    event: text("event").notNull(),
    round: smallint("round").notNull(),
    attempt: smallint("attempt").notNull(),
    startedAt: instant("started_at").notNull(),
    durationMs: integer("duration_ms").notNull(),
    outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
    statusCode: smallint("status_code"),
    errorCode: text("error_code"),
    /**
     * Headers of the request, stored for test events and for attempts of versions without payload formats. Null if the
     * request is composed again from its payload format (`payload_format`), or if an erasure has deleted them and kept
     * the digest (`body_digest`).
     */
    requestHeaders: json("request_headers").$type<Headers>(),
    requestBody: text("request_body"),
    responseHeaders: json("response_headers").$type<Headers>(),
    responseExcerpt: text("response_excerpt"),
    responseTruncated: boolean("response_truncated").notNull(),
    nextAttemptAt: instant("next_attempt_at"),
    /**
     * Set if the receiver closed a reused connection before the first byte of a response, and the same request was sent
     * again on a new connection within the attempt (contract 7.10). The receiver may have processed the request twice.
     */
    resent: boolean("resent").notNull().default(false),
    /**
     * Set if a crashed dispatcher may have sent the same POST without storing a row for it, so that this POST may be a
     * repeat (contract 7.4).
     */
    possiblyRepeated: boolean("possibly_repeated").notNull().default(false),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }),
    batchJobId: bytewise("batch_job_id"),
    recordedAt: instant("recorded_at"),
    /**
     * The number of the payload format with which the request is composed again (src/outbox/payload-format.ts). The
     * input is the event's history, started_at, attempt, and the following columns: the `Host` header and the HMACs.
     * The request is shown only if its body matches `body_digest`, the first 16 bytes of the SHA-256 of the exact body.
     */
    payloadFormat: smallint("payload_format"),
    host: text("host"),
    signature: bytes("signature"),
    previousSignature: bytes("previous_signature"),
    bodyDigest: bytes("body_digest"),
    /**
     * The HMACs of `webhook-signature`, concatenated: with the current secret, and with the previous secret during its
     * grace period. Null for a request without the headers of Standard Webhooks.
     */
    standardSignatures: bytes("standard_signatures"),
    /**
     * The reason for the `error_code` `tls` (src/outbox/tls-reason.ts); null otherwise, and for attempts of release
     * 0.1.0.
     */
    tlsReason: text("tls_reason"),
    /** `X-SVC-Sequence` and `X-SVC-Settled`; null for a request without them (contract 7.19). */
    sentNumber: bigNumber("sent_number"),
    sentSettled: bigNumber("sent_settled"),
    /**
     * The names of the subscription's own headers in the request, separated by commas; null if it had none. Their values
     * are not stored.
     */
    headerNames: text("header_names"),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.id] })],
);

/**
 * The numbers of attempts per five minutes, hour and day, by outcome and duration. Charts and daily statistics read few
 * of these rows, and the attempts after the last bucket. A maintenance job fills the table, so that the dispatcher has
 * no additional work.
 */
export const attemptStats = pgTable(
  "attempt_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    /** The length of the bucket in s. An hour is the sum of its five-minute buckets, and a day the sum of its hours. */
    stepS: integer("step_s").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
    /**
     * The bins of duration_ms that occurred, and the number of attempts in each of them. src/webhooks/stats.ts defines
     * the bins.
     */
    bins: smallint("bins").array().notNull(),
    counts: integer("counts").array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.stepS, t.bucketAt, t.outcome] })],
);

/**
 * The number of entries of a subscription that were queued or in flight at the end of a bucket. No row if there were
 * none.
 */
export const backlogStats = pgTable(
  "backlog_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    entries: integer("entries").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.bucketAt] })],
);

/**
 * The instant until which the statistics job has counted attempts. Later ones are counted from `delivery_attempts`
 * when they are read. The table has one row.
 */
export const statsProgress = pgTable("stats_progress", {
  id: smallint("id").primaryKey().default(1),
  countedUntil: instant("counted_until").notNull(),
});
