import { sql } from "drizzle-orm";
import { boolean, integer, json, pgTable, smallint, text, uniqueIndex } from "drizzle-orm/pg-core";

import { companyId } from "./companies.ts";
import { bytewise, instant } from "./columns.ts";
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
  (t) => [uniqueIndex("alerts_once").on(t.incidentId, t.kind)],
);

/** Mails, written in the transaction of what they tell of and sent by the dispatcher that claims them. */
export const mails = pgTable("mails", {
  id: bytewise("id").primaryKey(),
  kind: text("kind").notNull(),
  /**
   * Recipient, subject and bodies, sealed with `mail:<id>` as context. Erased with the last state: a sent code is
   * nobody's business any more, and a dead one neither.
   */
  sealedMessage: text("sealed_message"),
  /**
   * queued: to be sent at due_at, under `attempt`, the number of its next try; a claim puts due_at off. The mailer
   * moves it on, to sent when an SMTP server has taken it, to dead when that refused it for good, or its attempts or its time are used up.
   */
  state: text("state", { enum: ["queued", "sent", "dead"] })
    .notNull()
    .default("queued"),
  attempt: smallint("attempt").notNull().default(1),
  dueAt: instant("due_at"),
  /** From then on it is of no use to its reader, as with a code that has run out. */
  expiresAt: instant("expires_at"),
  createdAt: instant("created_at").notNull(),
  settledAt: instant("settled_at"),
  /** Of the last failed attempt, in our own words: what a server answers may quote the recipient. */
  errorCode: text("error_code"),
  lastError: text("last_error"),
});
