import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { mails } from "../../db/schema/alerts.ts";
import { isMailAddress } from "../lib/email.ts";
import type { SecretBox } from "../lib/secret-box.ts";

/** The kind of a mail. Logs contain nothing else about a mail. */
export type MailKind =
  | "otp"
  | "invitation"
  | "password_changed"
  | "security_notice"
  | "webhook_alert"
  | "alert_recipient"
  | "homeowner_notice"
  | "flag_status_changed";

/** The part of a mail that is sealed while it waits: recipient and content. */
export interface MailMessage {
  /** Empty if the recipient cannot be mailed. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  /** The partner whose alerts the mail is about; it waits while that partner is suspended (contract 10.1). */
  readonly partnerId?: number;
}

export interface NewMail extends MailMessage {
  readonly kind: MailKind;
  /** The instant from which the mail is not sent any more, such as the expiry of its code. */
  readonly expiresAt?: Date;
  /** The review that the mail is about. */
  readonly reviewId?: number;
}

/** Characters that could end a header line, and all other control characters and separators. */
const BREAKS = /[\p{Cc}\p{Z}]+/gu;

/**
 * Queues mails in the transaction of the action that causes them, with one statement. The caller wakes the mailer
 * after the commit. A recipient that is not one plain address, which an earlier version may have stored, is left out of its mail:
 * the mailer gives that mail up with a log line and a count, and the others are sent.
 */
export async function queueMails(
  tx: Tx,
  { box }: { readonly box: SecretBox },
  queued: readonly NewMail[],
  now: Date,
): Promise<void> {
  const rows = queued.map(({ kind, expiresAt, reviewId, subject, ...mail }) => {
    const id = ulid(now.getTime());
    const oneLine = subject.toWellFormed().replace(BREAKS, " ").trim();
    const to = isMailAddress(mail.to) ? mail.to : "";
    const message: MailMessage = { ...mail, to, subject: oneLine };
    const sealedMessage = box.seal(JSON.stringify(message), mailAssociatedData(id));
    return { id, kind, sealedMessage, reviewId, expiresAt, dueAt: now, createdAt: now };
  });
  if (rows.length > 0) await tx.insert(mails).values(rows);
}

/** Opens a sealed mail. Throws if no key opens it. */
export function openMail(box: SecretBox, id: string, sealedMessage: string): MailMessage {
  // Only `queueMails` seals with this associated data.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealedMessage, mailAssociatedData(id))) as MailMessage;
}

function mailAssociatedData(id: string): string {
  return `mail:${id}`;
}

/** Kinds of alerts about webhooks (contract 7.17) by ascending severity; `recovered` reports the end of an incident. */
export const TROUBLE_KINDS = [
  "head_retrying",
  "oldest_waiting",
  "failures_5",
  "failures_10",
  "failures_18",
  "disabled",
] as const;
export const ALERT_KINDS = [...TROUBLE_KINDS, "recovered"] as const;

export type TroubleKind = (typeof TROUBLE_KINDS)[number];
export type AlertKind = (typeof ALERT_KINDS)[number];

/** Alert settings of partners that have not set any. They get every kind of alert, addressed to their owners. */
export const ALERT_DEFAULTS = { oldestWaitingMinutes: 15, digestMinutes: 10 } as const;

/** The value of `X-SVC-Event` in the POST that delivers an alert. */
export const ALERT_EVENT = "webhook.alert";

/** Returns the associated data with which the secret for alert POSTs is sealed. */
export function alertSecretAssociatedData(partnerId: number, settingsId: string): string {
  return `alerts:${partnerId}:${settingsId}`;
}
