import { createTransport, type SendMailOptions } from "nodemailer";

import { checkServerIdentity } from "../../src/lib/certificates.ts";
import { mailedAddress } from "../../src/lib/email.ts";
import type { Mailbox } from "../../src/lib/settings-reader.ts";
import type { MailMessage } from "../../src/outbox/mail.ts";
import type { MailError, MailOutcome } from "./decide.ts";
import type { ClaimedMail } from "./queries.ts";

/**
 * The most mails under way at the same time, each on a separate connection. A server that hangs holds up no more
 * mails.
 */
export const MAIL_CONNECTIONS = 8;
/** The time limit of one mail in milliseconds, from the connection to the reply after its last byte. */
const MAIL_TIMEOUT_MS = 30_000;

type OutgoingMail = Pick<ClaimedMail, "id" | "createdAt"> & { readonly message: MailMessage };

export type MailTransport = ReturnType<typeof createMailTransport>;

/** Creates an SMTP transport that keeps its connections for further mails. */
export function createMailTransport(options: {
  readonly url: string;
  readonly from: Mailbox;
  readonly timeoutMs?: number;
}) {
  const { url, from, timeoutMs = MAIL_TIMEOUT_MS } = options;
  const pool = createTransport({
    url,
    pool: true,
    maxConnections: MAIL_CONNECTIONS,
    // Nodemailer's pool retries only if the connection broke before the mail was begun. The queue does all other
    // retries.
    maxRequeues: 1,
    connectionTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // Closes an abandoned connection immediately, so that it does not stay open beside the next one.
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
    tls: { checkServerIdentity },
  });
  return {
    /** Sends one mail. Every failure is an outcome and never throws. */
    async send(mail: OutgoingMail, stopped: AbortSignal): Promise<MailOutcome> {
      const deadline = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([stopped, deadline]);
      try {
        await pool.sendMail({ ...compose(mail, from), signal });
        return { kind: "accepted" };
      } catch (error) {
        if (stopped.aborted) return { kind: "aborted" };
        if (!deadline.aborted) return outcomeOf(error);
        const late = `The mail server did not finish within ${timeoutMs} ms.`;
        return { kind: "failed", errorCode: "timeout", lastError: late };
      }
    },
    close: () => pool.close({ force: true }),
  };
}

/**
 * Composes a mail. A repeated mail has the same Message-ID and Date, so that a receiver can recognize it. The
 * envelope is set explicitly, so no header decides on the recipient.
 */
function compose({ id, createdAt, message }: OutgoingMail, from: Mailbox): SendMailOptions {
  const to = mailedAddress(message.to);
  return {
    envelope: { from: from.address, to: [to] },
    messageId: `<${id}@${from.address.slice(from.address.lastIndexOf("@") + 1)}>`,
    date: createdAt,
    from,
    to: { name: "", address: to },
    subject: message.subject,
    text: message.text,
    ...(message.html !== undefined && { html: message.html }),
    // Requests no automatic replies (RFC 3834).
    headers: { "Auto-Submitted": "auto-generated" },
    xMailer: false,
  };
}

/**
 * SMTP commands with replies that are about the mail or its recipient. Replies to other commands are about this
 * client.
 */
const OF_THE_MAIL: readonly unknown[] = ["RCPT TO", "DATA"];
/** The SMTP reply code for a bad sequence of commands (RFC 5321, 4.3.2). It does not condemn the mail. */
const BAD_SEQUENCE = 503;

/** Classifies an error of nodemailer. Only the numbers of the server's reply are kept. */
export function outcomeOf(error: unknown): MailOutcome {
  const { code, command, response, responseCode }: Record<string, unknown> = { ...Object(error) };
  if (typeof responseCode === "number") {
    const permanent = responseCode >= 500 && responseCode !== BAD_SEQUENCE;
    const kind = permanent && OF_THE_MAIL.includes(command) ? "refused" : "failed";
    // The enhanced status code after the first number, such as 5.1.1 (RFC 3463).
    const [, detail] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(String(response)) ?? [];
    const answer = detail === undefined ? responseCode : `${responseCode} ${detail}`;
    const what = typeof command === "string" && COMMAND.test(command) ? command : "The connection";
    return {
      kind,
      errorCode: `smtp_${responseCode}`,
      lastError: `${what} was answered ${answer}.`,
    };
  }
  // Nodemailer reports these two codes without a reply: the mail cannot be sent over SMTP to this server at all.
  const kind = code === "EENVELOPE" || code === "EMESSAGE" ? "refused" : "failed";
  return { kind, ...(UNANSWERED.get(code) ?? UNEXPECTED) };
}

/** The pattern of the name of an SMTP command. Text of any other form is left out of the error. */
const COMMAND = /^[A-Z][A-Z0-9 -]{1,20}$/;

const UNEXPECTED: MailError = { errorCode: "unexpected", lastError: "The mail could not be sent." };
const UNANSWERED: ReadonlyMap<unknown, MailError> = new Map([
  ["EENVELOPE", { errorCode: "unsendable", lastError: "The mail cannot be sent as it is." }],
  ["EMESSAGE", { errorCode: "unsendable", lastError: "The mail cannot be sent as it is." }],
  ["ECONNECTION", { errorCode: "connection_failed", lastError: "The connection failed." }],
  ["ESOCKET", { errorCode: "connection_failed", lastError: "The connection failed." }],
  ["ETIMEDOUT", { errorCode: "timeout", lastError: "The mail server did not answer in time." }],
  ["EDNS", { errorCode: "dns_failed", lastError: "The name of the mail server did not resolve." }],
  ["ETLS", { errorCode: "tls_failed", lastError: "The connection could not be secured." }],
  ["EAUTH", { errorCode: "auth_failed", lastError: "Signing in to the mail server failed." }],
  ["EPROTOCOL", { errorCode: "protocol_error", lastError: "The mail server did not speak SMTP." }],
]);
