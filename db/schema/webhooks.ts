import { sql } from "drizzle-orm";
import { boolean, integer, pgTable, smallint, text } from "drizzle-orm/pg-core";

import { companyId } from "./companies.ts";
import { bytewise, instant, timestamps, uniqueWhere } from "./columns.ts";

export const webhookSubscriptions = pgTable(
  "webhook_subscriptions",
  {
    id: bytewise("id").primaryKey(),
    /** A number that identifies the subscription in `review_history` with fewer bytes than its id. */
    number: integer("number")
      .generatedAlwaysAsIdentity()
      .unique("webhook_subscriptions_number_key"),
    partnerId: companyId("partner_id").notNull(),
    /** The shard that the subscription belongs to, one of 64; chosen when the subscription is created. */
    shard: smallint("shard").notNull(),
    label: text("label").notNull(),
    webhookUrl: text("webhook_url").notNull(),
    deliveryKind: text("delivery_kind", { enum: ["immediate", "batch"] }).notNull(),
    batchIntervalHours: integer("batch_interval_hours"),
    events: text("events").array(),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
    suppressNativeNotifications: boolean("suppress_native_notifications").notNull(),
    ordering: text("ordering", { enum: ["subscription", "review"] }).notNull(),
    /** Whether the POSTs also carry the headers of Standard Webhooks (contract 7.18). */
    standardWebhooks: boolean("standard_webhooks").notNull().default(false),
    /** Whether the POSTs carry the number of their event and that of the last settled one (contract 7.19). */
    sequenceHeaders: boolean("sequence_headers").notNull().default(false),
    /**
     * State of the subscription:
     * - active → disabled: by the dispatcher at the 20th permanent failure in a row, or by a request to disable it.
     * - disabled → active: by a request to enable it, or by the dispatcher after a 2xx response to the pending test.
     * - active, disabled → deleted: by a request to delete it.
     */
    state: text("state", { enum: ["active", "disabled", "deleted"] }).notNull(),
    consecutiveFailureCount: integer("consecutive_failure_count").notNull().default(0),
    /**
     * The secret that signs the POSTs, sealed with the ids of partner and subscription as associated data. The
     * ciphertext cannot be opened in another row.
     */
    sealedSecret: text("sealed_secret").notNull(),
    secretFingerprint: text("secret_fingerprint").notNull(),
    sealedPreviousSecret: text("sealed_previous_secret"),
    previousSecretExpiresAt: instant("previous_secret_expires_at"),
    /** The names of the headers that the partner adds to the POSTs (contract 6.22), as in `sealedHeaders`. */
    headerNames: text("header_names").array().notNull().default([]),
    /**
     * These headers with their values, as a sealed JSON object; null if there are none. A trigger removes them if the
     * URL changes and they do not, as version 0.1.0 changes it.
     */
    sealedHeaders: text("sealed_headers"),
    lastBatchDispatchedAt: instant("last_batch_dispatched_at"),
    nextBatchAt: instant("next_batch_at"),
    /** The instant before which recorded events are not sent to an imported subscription; null for no limit. */
    beginsAt: instant("begins_at"),
    ...timestamps(),
    disabledAt: instant("disabled_at"),
    disabledReason: text("disabled_reason"),
    /** The reason that an operator gave when disabling the subscription. */
    disabledNote: text("disabled_note"),
    /**
     * The event id of the test that decides whether a disabled subscription is enabled (contract 6.16). A request to
     * enable the subscription sets it. It is cleared when the test's attempt is stored, and when the subscription is
     * disabled, deleted or gets another URL.
     */
    pendingTestEventId: bytewise("pending_test_event_id"),
    deletedAt: instant("deleted_at"),
  },
  (t) => [
    // A partner has one subscription per slot (contract 6.2). The index enforces this, because concurrent requests
    // could both pass a check before the insert.
    uniqueWhere("webhook_subscriptions_slot", sql`state <> 'deleted'`, t.partnerId, t.deliveryKind),
  ],
);
