import { addMs } from "../../src/lib/clock.ts";

const MINUTE_MS = 60_000;

/**
 * The waits between the attempts of one mail, of which there are eight in about two days: a restart or greylisting
 * costs a minute or five, and a mail server that is away for a night and a day costs no mail.
 */
export const MAIL_RETRY_DELAYS_MS: readonly number[] = [1, 5, 30, 120, 360, 720, 1_440].map(
  (minutes) => minutes * MINUTE_MS,
);
/** How long a mail waits that no key opens: for us to mend that, not for a mail server. */
export const UNREADABLE_DELAY_MS = 30 * MINUTE_MS;

/** Why a mail was not taken, in our own words, because those of a server may quote the recipient. */
export interface MailFault {
  readonly errorCode: string;
  readonly error: string;
}

/** `refused`: the server will never take this mail. `aborted`: we broke it off, and the server may have taken it or not. */
export type MailOutcome =
  | { readonly kind: "accepted" | "aborted" }
  | ({ readonly kind: "refused" | "failed" } & MailFault);

/**
 * What becomes of a queued mail. `postponed`: it is tried again later, as the same attempt. `interrupted`: it is due again
 * at once, as the same attempt.
 */
export type MailDecision =
  | { readonly kind: "sent" | "interrupted" }
  | ({ readonly kind: "dead" } & MailFault)
  | ({ readonly kind: "retry" | "postponed"; readonly dueAt: Date } & MailFault);

interface MailState {
  readonly attempt: number;
  readonly expiresAt: Date | null;
  readonly readable: boolean;
}

/** What is decided of a mail without asking any server; undefined if it has to be sent. */
export function decideUnsent(mail: MailState, now: Date): MailDecision | undefined {
  if (mail.expiresAt !== null && mail.expiresAt <= now)
    return { kind: "dead", errorCode: "expired", error: "It ran out before it could be sent." };
  if (mail.readable) return undefined;
  return {
    kind: "postponed",
    dueAt: addMs(now, UNREADABLE_DELAY_MS),
    errorCode: "unreadable",
    error: "No master key opens it.",
  };
}

/** Each delay counts from the end of the failed attempt. A mail whose retry would come too late for its reader is dead. */
export function decideMail(
  outcome: MailOutcome,
  mail: MailState & { readonly retryDelaysMs: readonly number[] },
  endedAt: Date,
): MailDecision {
  switch (outcome.kind) {
    case "accepted":
      return { kind: "sent" };
    case "aborted":
      return { kind: "interrupted" };
    case "refused":
      return { ...outcome, kind: "dead" };
    case "failed": {
      const delay = mail.retryDelaysMs[mail.attempt - 1];
      if (delay === undefined) return { ...outcome, kind: "dead" };
      const dueAt = addMs(endedAt, delay);
      return mail.expiresAt !== null && mail.expiresAt <= dueAt
        ? { ...outcome, kind: "dead" }
        : { ...outcome, kind: "retry", dueAt };
    }
  }
}
