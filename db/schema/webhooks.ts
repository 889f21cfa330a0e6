import { sql } from "drizzle-orm";
import { boolean, integer, pgTable, smallint, text } from "drizzle-orm/pg-core";

import { companyId } from "./companies.ts";
import { bytewise, instant, timestamps, uniqueWhere } from "./columns.ts";

export const webhookSubscriptions = pgTable(
  "webhook_subscriptions",
  {
    id: bytewise("id").primaryKey(),
    /** A number that identifies the subscription in `review_history` in fewer bytes than the id. */
    number: integer("number")
      .generatedAlwaysAsIdentity()
      .unique("webhook_subscriptions_number_key"),
    partnerId: companyId("partner_id").notNull(),
    /** The shard, one of 64, that the subscription belongs to; chosen at creation. */
    shard: smallint("shard").notNull(),
    label: text("label").notNull(),
    webhookUrl: text("webhook_url").notNull(),
    deliveryKind: text("delivery_kind", { enum: ["immediate", "batch"] }).notNull(),
    batchIntervalHours: integer("batch_interval_hours"),
    events: text("events").array(),
    payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
    suppressNativeNotifications: boolean("suppress_native_notifications").notNull(),
    ordering: text("ordering", { enum: ["subscription", "review"] }).notNull(),
    /** Whether deliveries also carry the headers of Standard Webhooks (contract 7.18). */
    standardWebhooks: boolean("standard_webhooks").notNull().default(false),
    /**
     * State of the subscription. active → disabled: the dispatcher at the 20th permanent failure in a row, or the
     * disable action. disabled → active: the enable action, or the dispatcher with the 2xx of the pending test. active,
     * disabled → deleted: the delete action.
     */
    state: text("state", { enum: ["active", "disabled", "deleted"] }).notNull(),
    consecutiveFailureCount: integer("consecutive_failure_count").notNull().default(0),
    /**
     * The secret that signs deliveries, sealed with the ids of partner and subscription as associated data, so that a
     * swapped ciphertext cannot be opened.
     */
    sealedSecret: text("sealed_secret").notNull(),
    secretFingerprint: text("secret_fingerprint").notNull(),
    sealedPreviousSecret: text("sealed_previous_secret"),
    previousSecretExpiresAt: instant("previous_secret_expires_at"),
    lastBatchDispatchedAt: instant("last_batch_dispatched_at"),
    nextBatchAt: instant("next_batch_at"),
    /** The subscription of an import receives no event that was recorded before this instant; null for none. */
    beginsAt: instant("begins_at"),
    ...timestamps(),
    disabledAt: instant("disabled_at"),
    disabledReason: text("disabled_reason"),
    /** The reason that an operator gave for disabling it. */
    disabledNote: text("disabled_note"),
    /**
     * The event id of the test that decides whether a disabled subscription is enabled (contract 6.16). The enable action
     * sets it. The record of the test's attempt clears it, and so do a disable, a delete, and an update of the URL.
     */
    pendingTestEventId: bytewise("pending_test_event_id"),
    deletedAt: instant("deleted_at"),
  },
  (t) => [
    // A partner has one subscription per slot (contract 6.2). This index enforces that, because concurrent requests
    // could pass a check before the insert.
    uniqueWhere("webhook_subscriptions_slot", sql`state <> 'deleted'`, t.partnerId, t.deliveryKind),
  ],
);
