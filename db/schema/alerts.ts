import { sql } from "drizzle-orm";
import { boolean, integer, json, pgTable, smallint, text, uniqueIndex } from "drizzle-orm/pg-core";

import { companyId } from "./companies.ts";
import { bytewise, instant, state, uniqueWhere } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/** A partner's settings for alerts about its webhooks: kinds and recipients. Without a row the defaults apply. */
export const alertSettings = pgTable("alert_settings", {
  id: bytewise("id").primaryKey(),
  partnerId: companyId("partner_id").notNull().unique("alert_settings_partner_id_key"),
  /** The addresses that get the mails; null stands for the partner's owners. */
  recipients: text("recipients").array(),
  /** The recipients that have confirmed that they want the mails; the others get none. */
  confirmedRecipients: text("confirmed_recipients").array().notNull().default([]),
  kinds: text("kinds").array().notNull(),
  oldestWaitingMinutes: integer("oldest_waiting_minutes").notNull(),
  /** The shortest interval between two mails to a partner; alerts raised meanwhile are collected in the next mail. */
  digestMinutes: integer("digest_minutes").notNull(),
  webhookUrl: text("webhook_url"),
  /**
   * The secret that signs the partner's alert POSTs, sealed with the ids of the partner and of this row as associated
   * data, so that a swapped ciphertext cannot be opened.
   */
  sealedSecret: text("sealed_secret"),
  secretFingerprint: text("secret_fingerprint"),
  updatedAt: instant("updated_at").notNull(),
});

/**
 * A period of failures of a subscription. It begins with the first alert and ends with the next 2xx response, an
 * enable action or the deletion.
 */
export const incidents = pgTable(
  "incidents",
  {
    id: bytewise("id").primaryKey(),
    subscriptionId: bytewise("subscription_id")
      .notNull()
      .references(() => webhookSubscriptions.id),
    partnerId: companyId("partner_id").notNull(),
    /** A 2xx response after this instant ends the incident. */
    openedAt: instant("opened_at").notNull(),
    /** The first failed attempt of the incident; null if an earlier version opened it. */
    beganAt: instant("began_at"),
    /**
     * Columns of the subscription as they were at the last check. A difference from the present values shows that the
     * subscription was enabled or got a 2xx response in between.
     */
    disabledAt: instant("disabled_at"),
    failures: integer("failures").notNull(),
    /** Whether an alert of the incident was sent, so that its end is reported too. */
    isTold: boolean("is_told").notNull(),
    endedAt: instant("ended_at"),
    endedBy: text("ended_by", { enum: ["recovered", "enabled", "deleted"] }),
  },
  (t) => [uniqueWhere("incidents_open", sql`ended_at is null`, t.subscriptionId)],
);

/** An alert; each kind occurs once per incident. The row is also the queue entry of its mail and its webhook. */
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
    /** The facts at the time of the alert: number of failures, the first and the last one, and the waiting entries. */
    cause: json("cause").notNull(),
    /**
     * State of the alert's mail. none: not wanted. pending: part of the next mail to the partner. queued: that mail
     * was put into `mails` at mailed_at.
     */
    mailState: text("mail_state", { enum: ["none", "pending", "queued"] }).notNull(),
    mailedAt: instant("mailed_at"),
    /**
     * State of the alert's POST. none: not wanted. queued: a POST is due at webhook_due_at. sent: the POST got a 2xx
     * response. dead: all attempts have failed.
     */
    webhookState: text("webhook_state", { enum: ["none", "queued", "sent", "dead"] }).notNull(),
    webhookAttempt: smallint("webhook_attempt").notNull().default(0),
    webhookDueAt: instant("webhook_due_at"),
    webhookError: text("webhook_error"),
  },
  (t) => [uniqueIndex("alerts_once").on(t.incidentId, t.kind)],
);

/** Mails, written in the transaction of the action that causes them, and sent by the dispatcher that claims them. */
export const mails = pgTable("mails", {
  id: bytewise("id").primaryKey(),
  kind: text("kind").notNull(),
  /**
   * Recipient, subject and bodies, sealed with `mail:<id>` as associated data. Erased when the mail is sent or dead,
   * so that codes are not kept.
   */
  sealedMessage: text("sealed_message"),
  /** The review that the mail is about, as long as it waits, so that an erasure finds it. */
  reviewId: integer("review_id"),
  /**
   * State of the mail. queued: to be sent at due_at; `attempt` is the number of the next attempt, and a claim
   * postpones due_at. The mailer changes queued to sent when an SMTP server accepts the mail. It changes queued to
   * dead when the server rejects the mail permanently, or when the attempts or the time are used up.
   */
  state: state("queued", "sent", "dead"),
  attempt: smallint("attempt").notNull().default(1),
  dueAt: instant("due_at"),
  /** The instant from which the mail is useless, such as the expiry of its code. */
  expiresAt: instant("expires_at"),
  createdAt: instant("created_at").notNull(),
  settledAt: instant("settled_at"),
  /**
   * The error of the last failed attempt, in our own words, because the response of an SMTP server may quote the
   * recipient.
   */
  errorCode: text("error_code"),
  lastError: text("last_error"),
});
