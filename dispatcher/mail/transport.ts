import { createTransport, type SendMailOptions } from "nodemailer";

import { checkServerIdentity } from "../../src/lib/certificates.ts";
import { mailedAddress } from "../../src/lib/email.ts";
import { fieldsOf } from "../../src/lib/fields.ts";
import type { Mailbox } from "../../src/lib/settings-reader.ts";
import type { MailMessage } from "../../src/outbox/mail.ts";
import type { MailError, MailOutcome } from "./decide.ts";
import type { ClaimedMail } from "./queries.ts";

/**
 * The most mails under way at the same time, each on a separate SMTP connection. If the server hangs, no more mails
 * than these are delayed by it.
 */
export const MAIL_CONNECTIONS = 8;
/** The time limit of one mail in milliseconds, from the connection to the reply after its last byte. */
const MAIL_TIMEOUT_MS = 30_000;

type OutgoingMail = Pick<ClaimedMail, "id" | "createdAt"> & { readonly message: MailMessage };

export type MailTransport = ReturnType<typeof createMailTransport>;

/** Creates an SMTP transport that keeps its SMTP connections for further mails. */
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
    // Nodemailer's pool retries only if the connection broke before the mail was begun. `Mailer` makes all other
    // retries.
    maxRequeues: 1,
    connectionTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    // Closes an abandoned SMTP connection immediately, so that it does not stay open beside the next one.
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
    from: { ...from, ...(message.sender !== undefined && { name: message.sender }) },
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
const COMMANDS_OF_THE_MAIL: readonly unknown[] = ["RCPT TO", "DATA"];
/**
 * The SMTP reply code for a bad sequence of commands (RFC 5321, 4.3.2). It is about the commands of this client and not
 * about the mail, so it does not count as permanent.
 */
const BAD_SEQUENCE = 503;

/** Classifies an error of nodemailer. Only the numbers of the server's reply are kept. */
export function outcomeOf(error: unknown): MailOutcome {
  const { code, command, response, responseCode } = fieldsOf(error);
  if (typeof responseCode === "number") {
    const permanent = responseCode >= 500 && responseCode !== BAD_SEQUENCE;
    const kind = permanent && COMMANDS_OF_THE_MAIL.includes(command) ? "refused" : "failed";
    // The enhanced status code after the first number, such as 5.1.1 (RFC 3463).
    const [, detail] = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(String(response)) ?? [];
    const answer = detail === undefined ? responseCode : `${responseCode} ${detail}`;
    const what =
      typeof command === "string" && SMTP_COMMAND.test(command) ? command : "The connection";
    return {
      kind,
      errorCode: `smtp_${responseCode}`,
      lastError: `${what} failed with reply ${answer}.`,
    };
  }
  // A mail with one of these two codes is refused: Nodemailer reports them, without a reply, if the mail cannot be sent
  // over SMTP to this server at all.
  const kind = code === "EENVELOPE" || code === "EMESSAGE" ? "refused" : "failed";
  return { kind, ...(ERRORS_WITHOUT_REPLY.get(code) ?? UNEXPECTED_ERROR) };
}

/** The pattern of the name of an SMTP command. Text of any other form is left out of the error. */
const SMTP_COMMAND = /^[A-Z][A-Z0-9 -]{1,20}$/;

const UNEXPECTED_ERROR: MailError = {
  errorCode: "unexpected",
  lastError: "The mail could not be sent.",
};
const ERRORS_WITHOUT_REPLY: ReadonlyMap<unknown, MailError> = new Map([
  ["EENVELOPE", { errorCode: "unsendable", lastError: "The mail is not valid for SMTP." }],
  ["EMESSAGE", { errorCode: "unsendable", lastError: "The mail is not valid for SMTP." }],
  [
    "ECONNECTION",
    { errorCode: "connection_failed", lastError: "The connection to the mail server failed." },
  ],
  [
    "ESOCKET",
    { errorCode: "connection_failed", lastError: "The connection to the mail server failed." },
  ],
  ["ETIMEDOUT", { errorCode: "timeout", lastError: "The mail server did not respond in time." }],
  [
    "EDNS",
    { errorCode: "dns_failed", lastError: "The host name of the mail server did not resolve." },
  ],
  ["ETLS", { errorCode: "tls_failed", lastError: "The TLS connection to the mail server failed." }],
  [
    "EAUTH",
    { errorCode: "auth_failed", lastError: "The mail server rejected the user name or password." },
  ],
  [
    "EPROTOCOL",
    { errorCode: "protocol_error", lastError: "The reply of the mail server was not SMTP." },
  ],
]);
