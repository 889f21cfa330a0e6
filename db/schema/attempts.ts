import { boolean, integer, json, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { bigNumber, bytes, bytewise, instant } from "./columns.ts";

type Headers = Readonly<Record<string, string | string[]>>;

/**
 * One row per POST to a receiver; only an erasure changes a row (contract 10.8). Ids are ULIDs of the start of the POST, so a day is a range
 * of ids, by which the table is partitioned. The last attempt of an entry, delivered or failed, also keeps the data
 * of the entry that a redelivery needs and review_history lacks (payload_mode, batch_job_id, recorded_at).
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
     * Headers of the request, kept for test events and for older attempts. Null if the request is composed again from
     * its payload format (`payload_format`), or if an erasure has removed it and left its digest (`body_digest`).
     */
    requestHeaders: json("request_headers").$type<Headers>(),
    requestBody: text("request_body"),
    responseHeaders: json("response_headers").$type<Headers>(),
    responseExcerpt: text("response_excerpt"),
    responseTruncated: boolean("response_truncated").notNull(),
    nextAttemptAt: instant("next_attempt_at"),
    /**
     * Set if a reused connection closed without a byte of a response, and the same request was sent once more on a
     * new connection within the attempt (contract 7.10). The receiver may have got the request twice.
     */
    resent: boolean("resent").notNull().default(false),
    /**
     * Set if a dispatcher that crashed may have made the same attempt without a record, so that this POST may be a
     * repeat (contract 7.4).
     */
    possiblyRepeated: boolean("possibly_repeated").notNull().default(false),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }),
    batchJobId: bytewise("batch_job_id"),
    recordedAt: instant("recorded_at"),
    /**
     * The number of the payload format that composes the request again (src/outbox/payload-format.ts). It uses the
     * event's history, started_at, attempt and the columns after it: the `Host` header, the HMACs, and the first 16 bytes
     * of the SHA-256 of the exact body. A request is shown only if this digest matches.
     */
    payloadFormat: smallint("payload_format"),
    host: text("host"),
    signature: bytes("signature"),
    previousSignature: bytes("previous_signature"),
    bodyDigest: bytes("body_digest"),
    /**
     * The HMACs of `webhook-signature`, one after the other: of the current secret, and of the previous one in its grace
     * period. Null for a request without the headers of Standard Webhooks.
     */
    standardSignatures: bytes("standard_signatures"),
    /** The reason of an `error_code` that is `tls` (src/outbox/tls-reason.ts); null otherwise, and for attempts of 0.1.0. */
    tlsReason: text("tls_reason"),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.id] })],
);

/**
 * Attempts counted per five minutes, hour and day, by outcome and duration. Charts and daily statistics read few of
 * these rows and the attempts since then. A maintenance job fills them later, so that the dispatcher has no extra
 * work.
 */
export const attemptStats = pgTable(
  "attempt_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    /**
     * The length of the bucket in seconds. An hour is the sum of its five-minute buckets, a day the sum of its hours.
     */
    stepS: integer("step_s").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
    /**
     * The bins of duration_ms that occurred, and the number of attempts in each; src/webhooks/stats.ts defines the
     * bins.
     */
    bins: smallint("bins").array().notNull(),
    counts: integer("counts").array().notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.stepS, t.bucketAt, t.outcome] })],
);

/** The number of unsettled entries of a subscription at the end of a bucket; no row if there were none. */
export const backlogStats = pgTable(
  "backlog_stats",
  {
    subscriptionId: bytewise("subscription_id").notNull(),
    bucketAt: instant("bucket_at").notNull(),
    entries: integer("entries").notNull(),
  },
  (t) => [primaryKey({ columns: [t.subscriptionId, t.bucketAt] })],
);

/** The progress of the statistics job; later attempts are counted from their rows. The table has one row. */
export const statsProgress = pgTable("stats_progress", {
  id: smallint("id").primaryKey().default(1),
  countedUntil: instant("counted_until").notNull(),
});
