import { sql } from "drizzle-orm";
import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { mails } from "../../db/schema/alerts.ts";
import { rows, statement } from "../../db/statement.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import type { Wake } from "./schedule.ts";

/** What a mail is about: the only thing that may be told of it in a log. */
type MailKind =
  | "otp"
  | "invitation"
  | "password_changed"
  | "webhook_alert"
  | "homeowner_notice"
  | "flag_status_changed";

/** What is sealed while a mail waits: who gets it and what it says. */
export interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
}

export interface NewMail extends MailMessage {
  readonly kind: MailKind;
  /** A code that has run out helps nobody: from then on the mail is not sent any more. */
  readonly expiresAt?: Date;
}

/** All mail is of one shard, so that one dispatcher is woken for it. */
export const MAIL_WAKE: Wake = Object.freeze({ subscriptionId: "mail", shard: 0 });

/** RFC 5321, 4.5.3.1.3, less the angle brackets. */
const ADDRESS_CHARS = 254;
const ADDRESS = /^[^\s\p{C}<>()[\]\\,;:@"]+@[^\s\p{C}<>()[\]\\,;:@"]+$/u;
/** Whatever might end a header line, and with it every other control character. */
const BREAKS = /[\p{Cc}\p{Z}]+/gu;

const insertion = statement({
  name: "mails.insert",
  // A request of a provider may queue 500 mails: they are one parameter that is a table, not 500 rows of parameters.
  params: {
    given: rows({
      id: mails.id,
      kind: mails.kind,
      sealedMessage: mails.sealedMessage,
      expiresAt: mails.expiresAt,
      createdAt: mails.createdAt,
    }),
  },
  text: ({ given }) => sql`
    insert into mails (id, kind, sealed_message, due_at, expires_at, created_at)
    select id, kind, "sealedMessage", "createdAt", "expiresAt", "createdAt" from ${given}`,
});

/**
 * Queues mails in the transaction of what they tell of, in one statement. Answers what to wake after the commit.
 * Throws for a recipient that is not one plain address: ask `isMailAddress` first if it came from outside.
 */
export async function queueMails(
  tx: Tx,
  { box }: { readonly box: SecretBox },
  queued: readonly NewMail[],
  now: Date,
): Promise<Wake> {
  const given = queued.map((mail) => rowOf(box, mail, now));
  if (given.length > 0) await tx.run(insertion, { given });
  return MAIL_WAKE;
}

function rowOf(box: SecretBox, { kind, expiresAt, subject, ...mail }: NewMail, createdAt: Date) {
  if (!isMailAddress(mail.to)) throw new Error(`The recipient of a ${kind} mail is no address.`);
  const id = ulid(createdAt.getTime());
  const message: MailMessage = { ...mail, subject: oneLine(subject) };
  const sealedMessage = box.seal(JSON.stringify(message), mailContext(id));
  return { id, kind, sealedMessage, expiresAt: expiresAt ?? null, createdAt };
}

/** Throws if no key opens it. */
export function openMail(box: SecretBox, id: string, sealedMessage: string): MailMessage {
  // Only `queueMails` seals under this context.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(box.open(sealedMessage, mailContext(id))) as MailMessage;
}

/** One address and nothing else: no name, no list, no line break, no quoted or bracketed form. */
export function isMailAddress(text: string): boolean {
  return text.length <= ADDRESS_CHARS && ADDRESS.test(text);
}

function oneLine(text: string): string {
  return text.toWellFormed().replace(BREAKS, " ").trim();
}

function mailContext(id: string): string {
  return `mail:${id}`;
}

/** What partners are told of trouble with their webhooks (contract 7.17), the gravest last, and that it has ended. */
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

/** What holds for a partner that has set nothing: every kind, to its owners. */
export const ALERT_DEFAULTS = { oldestWaitingMinutes: 15, digestMinutes: 10 } as const;

/** `X-SVC-Event` of the POST that tells an alert. */
export const ALERT_EVENT = "webhook.alert";

/** What the secret of alerts is sealed for. */
export function alertSecretContext(partnerId: number, settingsId: string): string {
  return `alerts:${partnerId}:${settingsId}`;
}
