import { sql } from "drizzle-orm";
import {
  boolean,
  index,
  integer,
  json,
  pgTable,
  smallint,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";
import { companyId } from "./companies.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/** What a partner wants to be told of trouble with its webhooks, and where; without a row the defaults hold. */
export const alertSettings = pgTable("alert_settings", {
  id: bytewise("id").primaryKey(),
  partnerId: companyId("partner_id").notNull().unique("alert_settings_partner_id_key"),
  /** Null: the partner's owners. */
  recipients: text("recipients").array(),
  kinds: text("kinds").array().notNull(),
  oldestWaitingMinutes: integer("oldest_waiting_minutes").notNull(),
  /** At most one mail in so long; what is raised meanwhile comes in one. */
  digestMinutes: integer("digest_minutes").notNull(),
  webhookUrl: text("webhook_url"),
  /** Sealed with the partner's id and this row's as context, so that a swapped ciphertext does not open. */
  sealedSecret: text("sealed_secret"),
  secretFingerprint: text("secret_fingerprint"),
  updatedAt: instant("updated_at").notNull(),
});

/** A stretch of trouble of a subscription: begins with its first alert, ends with the next 2xx, an enable or the delete. */
export const incidents = pgTable(
  "incidents",
  {
    id: bytewise("id").primaryKey(),
    subscriptionId: bytewise("subscription_id")
      .notNull()
      .references(() => webhookSubscriptions.id),
    partnerId: companyId("partner_id").notNull(),
    /** A 2xx that came later than this ends it. */
    openedAt: instant("opened_at").notNull(),
    /** Of the subscription, as last looked at: what differs says that it was enabled, or answered 2xx, in between. */
    disabledAt: instant("disabled_at"),
    failures: integer("failures").notNull(),
    /** Whether anybody was told, so that the end is told, too. */
    isTold: boolean("is_told").notNull(),
    endedAt: instant("ended_at"),
    endedBy: text("ended_by", { enum: ["recovered", "enabled", "deleted"] }),
  },
  (t) => [
    uniqueIndex("incidents_open")
      .on(t.subscriptionId)
      .where(sql`ended_at is null`),
    index("incidents_subscription").on(t.subscriptionId, t.id),
    index("incidents_old")
      .on(t.endedAt)
      .where(sql`ended_at is not null`),
  ],
);

/** Each kind once in an incident. The row is the queue of both ways to tell it. */
export const alerts = pgTable(
  "alerts",
  {
    id: bytewise("id").primaryKey(),
    incidentId: bytewise("incident_id")
      .notNull()
      .references(() => incidents.id, { onDelete: "cascade" }),
    subscriptionId: bytewise("subscription_id").notNull(),
    partnerId: integer("partner_id").notNull(),
    kind: text("kind", {
      enum: [
        "head_retrying",
        "failures_5",
        "failures_10",
        "failures_18",
        "oldest_waiting",
        "disabled",
        "recovered",
      ],
    }).notNull(),
    raisedAt: instant("raised_at").notNull(),
    /** What was known then: failures, the first and the last one, what waits. */
    cause: json("cause").notNull(),
    /** none: not wanted. pending: in the next mail to the partner. queued: that mail is in `mails` since mailed_at. */
    mailState: text("mail_state", { enum: ["none", "pending", "queued"] }).notNull(),
    mailedAt: instant("mailed_at"),
    /** none: not wanted. queued: a POST is due at webhook_due_at. sent: answered 2xx. dead: given up. */
    webhookState: text("webhook_state", { enum: ["none", "queued", "sent", "dead"] }).notNull(),
    webhookAttempt: smallint("webhook_attempt").notNull().default(0),
    webhookDueAt: instant("webhook_due_at"),
    webhookError: text("webhook_error"),
  },
  (t) => [
    uniqueIndex("alerts_once").on(t.incidentId, t.kind),
    index("alerts_unmailed")
      .on(t.partnerId)
      .where(sql`mail_state = 'pending'`),
    index("alerts_mailed")
      .on(t.partnerId, t.mailedAt)
      .where(sql`mail_state = 'queued'`),
    index("alerts_webhook_due")
      .on(t.webhookDueAt)
      .where(sql`webhook_state = 'queued'`),
  ],
);
