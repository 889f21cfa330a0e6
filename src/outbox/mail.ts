import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { mails } from "../../db/schema/alerts.ts";
import { isMailAddress } from "../lib/email.ts";
import type { SecretBox } from "../lib/secrets.ts";

/** The kind of a mail. Logs contain no other data of a mail. */
export type MailKind =
  | "otp"
  | "invitation"
  | "password_changed"
  | "security_notice"
  | "webhook_alert"
  | "alert_recipient"
  | "homeowner_notice"
  | "flag_status_changed";

/** The recipient and the content of a mail, which are encrypted while it is queued. */
export interface MailMessage {
  /** The address of the recipient; empty if no mail can be sent to it. */
  readonly to: string;
  /** The name of the sender: the tenant's brand. Absent for the name in the setting `MAIL_FROM`. */
  readonly sender?: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  /** The partner whose alerts the mail reports. The mail waits while that partner is suspended (contract 10.1). */
  readonly partnerId?: number;
}

export interface NewMail extends MailMessage {
  readonly kind: MailKind;
  /** The instant after which the mail must not be sent, for example because its code has expired. */
  readonly expiresAt?: Date;
  /** The review that the mail is about. */
  readonly reviewId?: number;
}

/** Matches characters that could end a header line, and all other control characters and separators. */
const HEADER_BREAKS = /[\p{Cc}\p{Z}]+/gu;

/**
 * Queues mails with one statement, in the transaction of the action that causes them. The caller wakes the mailer after
 * the commit. Earlier versions could store addresses that mail cannot be sent to. Such an address is removed from its
 * mail; the mailer logs, counts and discards that mail, and sends the others.
 */
export async function queueMails(
  tx: Tx,
  { box }: { readonly box: SecretBox },
  queued: readonly NewMail[],
  now: Date,
): Promise<void> {
  const rows = queued.map(({ kind, expiresAt, reviewId, subject, sender, ...mail }) => {
    const id = ulid(now.getTime());
    const to = isMailAddress(mail.to) ? mail.to : "";
    const message: MailMessage = {
      ...mail,
      to,
      subject: oneLine(subject),
      ...(sender !== undefined && { sender: oneLine(sender) }),
    };
    const sealedMessage = box.seal(JSON.stringify(message), mailAssociatedData(id));
    return { id, kind, sealedMessage, reviewId, expiresAt, dueAt: now, createdAt: now };
  });
  if (rows.length > 0) await tx.insert(mails).values(rows);
}

const oneLine = (text: string) => text.toWellFormed().replace(HEADER_BREAKS, " ").trim();

/** Decrypts a queued mail. Throws if no master key opens it. */
export function openMail(box: SecretBox, id: string, sealedMessage: string): MailMessage {
  // The type of the content is not checked, because only `queueMails` seals with this associated data.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealedMessage, mailAssociatedData(id))) as MailMessage;
}

function mailAssociatedData(id: string): string {
  return `mail:${id}`;
}
