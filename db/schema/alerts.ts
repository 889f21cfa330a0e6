import { sql } from "drizzle-orm";
import { boolean, integer, json, pgTable, smallint, text, uniqueIndex } from "drizzle-orm/pg-core";

import { companyId } from "./companies.ts";
import { bytewise, instant, state, uniqueWhere } from "./columns.ts";
import { webhookSubscriptions } from "./webhooks.ts";

/**
 * A partner's settings for alerts about its webhooks: kinds and recipients. A partner without a row has the default
 * settings.
 */
export const alertSettings = pgTable("alert_settings", {
  id: bytewise("id").primaryKey(),
  partnerId: companyId("partner_id").notNull().unique("alert_settings_partner_id_key"),
  /** The addresses that receive the mails; null means the partner's owners. */
  recipients: text("recipients").array(),
  /** The recipients that have confirmed that they want the mails. The other recipients receive none. */
  confirmedRecipients: text("confirmed_recipients").array().notNull().default([]),
  kinds: text("kinds").array().notNull(),
  oldestWaitingMinutes: integer("oldest_waiting_minutes").notNull(),
  /** Minimum interval between two mails to a partner. Alerts in between are collected in the next mail. */
  digestMinutes: integer("digest_minutes").notNull(),
  webhookUrl: text("webhook_url"),
  /**
   * The secret that signs the partner's alert POSTs. It is sealed with the ids of the partner and of this row as
   * associated data, so it cannot be opened in another row.
   */
  sealedSecret: text("sealed_secret"),
  secretFingerprint: text("secret_fingerprint"),
  updatedAt: instant("updated_at").notNull(),
});

/**
 * A period of failures of a subscription. It begins with the first alert. It ends with the next 2xx response, or when
 * the subscription is enabled or deleted.
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
    /** The start of the first failed attempt of the incident; null if an earlier version opened the incident. */
    beganAt: instant("began_at"),
    /**
     * Columns of the subscription at the last check, for comparison. If `disabled_at` was set and has changed, or if
     * the number of failures is lower now, the subscription was enabled or has received a 2xx response since that
     * check.
     */
    disabledAt: instant("disabled_at"),
    failures: integer("failures").notNull(),
    /** Whether an alert of the incident was sent. If so, the end of the incident is reported, too. */
    isTold: boolean("is_told").notNull(),
    endedAt: instant("ended_at"),
    endedBy: text("ended_by", { enum: ["recovered", "enabled", "deleted"] }),
  },
  (t) => [uniqueWhere("incidents_open", sql`ended_at is null`, t.subscriptionId)],
);

/** An alert. Each kind occurs once per incident. The row is also the queue entry for its mail and its POST. */
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
    /**
     * Data at the time of the alert: the number of failures, the first and the last failure, and the number of waiting
     * entries.
     */
    cause: json("cause").notNull(),
    /**
     * State of the alert's mail:
     * - none: no mail is sent.
     * - pending: the alert is part of the next mail to the partner.
     * - queued: that mail was inserted into `mails` at mailed_at.
     */
    mailState: text("mail_state", { enum: ["none", "pending", "queued"] }).notNull(),
    mailedAt: instant("mailed_at"),
    /**
     * State of the alert's POST:
     * - none: no POST is sent.
     * - queued: a POST is due at webhook_due_at.
     * - sent: the POST received a 2xx response.
     * - dead: the POST has failed at every try and is not sent any more.
     */
    webhookState: text("webhook_state", { enum: ["none", "queued", "sent", "dead"] }).notNull(),
    webhookAttempt: smallint("webhook_attempt").notNull().default(0),
    webhookDueAt: instant("webhook_due_at"),
    webhookError: text("webhook_error"),
  },
  (t) => [uniqueIndex("alerts_once").on(t.incidentId, t.kind)],
);

/** Mails, written in the transaction that causes them, and sent by the dispatcher that claims them. */
export const mails = pgTable("mails", {
  id: bytewise("id").primaryKey(),
  kind: text("kind").notNull(),
  /**
   * Recipient, subject and bodies, sealed with `mail:<id>` as associated data. Deleted when the state becomes sent or
   * dead, so that codes are not stored any longer.
   */
  sealedMessage: text("sealed_message"),
  /** The review that the mail is about, while the mail is queued, so that an erasure finds the mail. */
  reviewId: integer("review_id"),
  /**
   * State of the mail. queued: it is due at due_at, and `attempt` is the number of the next try; a claim postpones
   * due_at. sent: an SMTP server has accepted it. dead: the server has rejected it permanently, or its tries or its
   * time are used up.
   */
  state: state("queued", "sent", "dead"),
  attempt: smallint("attempt").notNull().default(1),
  dueAt: instant("due_at"),
  /** The instant after which the mail is not sent any more, for example because its code has expired. */
  expiresAt: instant("expires_at"),
  createdAt: instant("created_at").notNull(),
  settledAt: instant("settled_at"),
  /**
   * The error of the last failed try. It does not contain the response of the SMTP server, which may quote the
   * recipient.
   */
  errorCode: text("error_code"),
  lastError: text("last_error"),
});
