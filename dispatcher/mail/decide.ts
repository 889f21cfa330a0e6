import { addMs } from "../../src/lib/clock.ts";

const MINUTE_MS = 60_000;

/**
 * The delays between the eight attempts of a mail, about two days in all. A restart of the mail server or greylisting
 * delays a mail by a minute or five, and a mail server that is down for a day loses no mail.
 */
export const MAIL_RETRY_DELAYS_MS: readonly number[] = [1, 5, 30, 120, 360, 720, 1_440].map(
  (minutes) => minutes * MINUTE_MS,
);
/** The delay in milliseconds of a mail that no master key opens, which only an operator can repair. */
export const UNREADABLE_DELAY_MS = 30 * MINUTE_MS;

/** The reason why a mail was not accepted, in our own words, because the words of a server may quote the recipient. */
export interface MailError {
  readonly errorCode: string;
  readonly lastError: string;
}

/**
 * The result of an attempt to send a mail. `refused`: the server will never accept this mail. `aborted`: we aborted
 * the attempt, and the server may have accepted the mail or not.
 */
export type MailOutcome =
  | { readonly kind: "accepted" }
  | { readonly kind: "aborted" }
  | ({ readonly kind: "refused" | "failed" } & MailError);

/**
 * The decision about a queued mail. `dead`: no further attempt is made to send it. `postponed`: the mail is retried
 * later as the same attempt. `interrupted`: the mail is due again immediately as the same attempt.
 */
export type MailDecision =
  | { readonly kind: "sent" | "interrupted" }
  | ({ readonly kind: "dead" } & MailError)
  | ({ readonly kind: "retry" | "postponed"; readonly dueAt: Date } & MailError);

interface MailState {
  readonly attempt: number;
  readonly expiresAt: Date | null;
  readonly readable: boolean;
  /** Whether the recipient is an address. */
  readonly mailable: boolean;
}

/** Decides about a mail that has expired, cannot be decrypted or has no address; undefined if it has to be sent. */
export function decideUnsent(mail: MailState, now: Date): MailDecision | undefined {
  if (mail.expiresAt !== null && mail.expiresAt <= now)
    return {
      kind: "dead",
      errorCode: "expired",
      lastError: "The mail expired before it could be sent.",
    };
  if (mail.readable && mail.mailable) return undefined;
  if (mail.readable)
    return {
      kind: "dead",
      errorCode: "bad_address",
      lastError: "The recipient is not a valid address.",
    };
  return {
    kind: "postponed",
    dueAt: addMs(now, UNREADABLE_DELAY_MS),
    errorCode: "unreadable",
    lastError: "No master key decrypts the mail.",
  };
}

/**
 * Decides about a mail after an attempt to send it. Each delay counts from the end of the failed attempt. A mail that
 * would expire before its retry is dead.
 */
export function decideMail(
  outcome: MailOutcome,
  mail: MailState & { readonly retryDelaysMs: readonly number[] },
  endedAt: Date,
): MailDecision {
  if (outcome.kind === "accepted") return { kind: "sent" };
  if (outcome.kind === "aborted") return { kind: "interrupted" };
  const delayMs = outcome.kind === "failed" ? mail.retryDelaysMs[mail.attempt - 1] : undefined;
  const dueAt = delayMs === undefined ? undefined : addMs(endedAt, delayMs);
  const isInTime = dueAt !== undefined && (mail.expiresAt === null || dueAt < mail.expiresAt);
  return isInTime ? { ...outcome, kind: "retry", dueAt } : { ...outcome, kind: "dead" };
}
