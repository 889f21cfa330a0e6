import { addMs } from "../lib/clock.ts";
import type { CodeType } from "./passwords/model.ts";

/** Number of wrong passwords in a row that lock sign-in (contract 4.8). */
export const WRONG_ATTEMPTS_TO_LOCK = 5;
/**
 * Time in ms after the last wrong password at which the counters of the sign-in lock start from zero again
 * (contract 4.8).
 */
export const FORGET_FAILURES_AFTER_MS = 24 * 60 * 60 * 1000;

/** The sign-in lock of one normalised email address. */
export interface SignInLock {
  /** Number of wrong passwords since the last sign-in lock. */
  readonly failures: number;
  /** Number of sign-in locks so far; each lock lasts longer than the one before. */
  readonly locks: number;
  readonly lockedUntil: Date | null;
  readonly lastFailureAt: Date;
}

/**
 * Returns the instant until which every sign-in is rejected, even with the correct password; undefined if sign-in is
 * not locked.
 */
export function lockedUntil(
  lock: Pick<SignInLock, "lockedUntil"> | undefined,
  now: Date,
): Date | undefined {
  const until = lock?.lockedUntil ?? null;
  return until !== null && until > now ? until : undefined;
}

/** Returns the seconds for the header `Retry-After`, rounded up so that no client comes back too early. */
export function retryAfterS(until: Date, now: Date): number {
  return Math.max(1, Math.ceil((until.getTime() - now.getTime()) / 1000));
}

/** Number of codes that one budget of `codeBudget` allows within 24 h (contract 4.14). */
const CODES_PER_DAY = 10;
/**
 * Numbers of wrong codes that are allowed within 24 h (contract 4.14): for one email from all networks, and for one
 * email from one network. The second limit is lower, so that a stranger cannot use up all tries of a user.
 */
const WRONG_CODES_PER_DAY = 50;
const WRONG_CODES_PER_ADDRESS = 20;
/** Number of tries allowed for each code (contract 4.14). */
export const TRIES_PER_CODE = 5;
export const CODE_LIMITS_WINDOW_MS = 24 * 60 * 60 * 1000;

/**
 * Names the daily budget from which a code is taken. Each type of code has two budgets: one for network addresses
 * from which the user signed in before, and one for all other addresses. So a stranger can use up neither the user's
 * own codes nor codes of another type.
 */
export function codeBudget(
  type: CodeType,
  isKnownAddress: boolean,
): CodeType | `${CodeType} known` {
  return isKnownAddress ? `${type} known` : type;
}

/** A limit of mails: at most `most` of them within any period of `periodMs`. */
interface MailLimit {
  readonly most: number;
  readonly periodMs: number;
}

/**
 * Limits of the mails to one address that other users cause: invitations, and mails that ask to confirm the address
 * (contract 4.22).
 */
export const MAILS_TO_ADDRESS: readonly MailLimit[] = [
  { most: 3, periodMs: 60_000 },
  { most: 10, periodMs: CODE_LIMITS_WINDOW_MS },
];
/** Limit of the invitations that the users of a partner send together (contract 4.22). */
export const INVITATIONS_OF_PARTNER: readonly MailLimit[] = [{ most: 100, periodMs: 3_600_000 }];
/** Number of invitations of a partner's users that may be open at the same time (contract 4.22). */
export const OPEN_INVITATIONS = 200;

/** Returns the instant from which the limits allow another mail; undefined if they allow one now. */
export function nextMailAt(
  sentAt: readonly Date[],
  limits: readonly MailLimit[],
  now: Date,
): Date | undefined {
  const sorted = sentAt.toSorted((a, b) => a.getTime() - b.getTime());
  const waits = limits.flatMap(({ most, periodMs }) => {
    const oldest = sorted.at(-most);
    const until = oldest && addMs(oldest, periodMs);
    return until === undefined || until <= now ? [] : [until];
  });
  return waits.toSorted((a, b) => b.getTime() - a.getTime())[0];
}

/** Instants at which codes were issued for one email, and at which wrong codes were entered for it. */
export interface CodeLimits {
  readonly issuedAt: readonly Date[];
  readonly wrongAt: readonly Date[];
}

/** The last code that was issued for an email and purpose. */
export interface EmailCode {
  /** The user that received the code by mail; null for a signup, and for a code that was not mailed. */
  readonly userId: number | null;
  readonly tries: number;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
}

/** Returns the instants within the last 24 h. Only these count towards the limits of codes. */
export function withinWindow(instants: readonly Date[], now: Date): Date[] {
  return instants.filter((at) => addMs(at, CODE_LIMITS_WINDOW_MS) > now);
}

/** Returns whether the daily budget allows another code. */
export function hasCodesLeft({ issuedAt }: Pick<CodeLimits, "issuedAt">, now: Date): boolean {
  return withinWindow(issuedAt, now).length < CODES_PER_DAY;
}

/**
 * Returns whether a new code must wait, because another code was issued to the email within `cooldownS`. Codes for any
 * purpose count, whether used or not (contract 4).
 */
export function isCoolingDown({ issuedAt }: CodeLimits, now: Date, cooldownS: number): boolean {
  return issuedAt.some((at) => addMs(at, cooldownS * 1000) > now);
}

/** Returns whether the code can still be entered: it was not used and has not expired. */
export function isOpenCode(
  code: Pick<EmailCode, "expiresAt" | "consumedAt"> | undefined,
  now: Date,
): boolean {
  return code !== undefined && code.consumedAt === null && code.expiresAt > now;
}

/**
 * Instants at which wrong codes were entered for one email: from all networks, and from the current client's network.
 */
export interface WrongTries {
  readonly wrongAt: readonly Date[];
  readonly wrongHereAt: readonly Date[];
  /**
   * Whether the user signed in from the client's network before. If so, wrong codes from other networks do not count
   * against this client.
   */
  readonly isKnownAddress: boolean;
}

/**
 * Returns whether an entered code is compared with the stored code at all. If not, it is rejected like a wrong code.
 */
export function mayTryCode(
  { wrongAt, wrongHereAt, isKnownAddress }: WrongTries,
  code: Pick<EmailCode, "expiresAt" | "consumedAt" | "tries">,
  now: Date,
): boolean {
  const isLeft =
    code.tries < TRIES_PER_CODE &&
    (isKnownAddress || withinWindow(wrongAt, now).length < WRONG_CODES_PER_DAY) &&
    withinWindow(wrongHereAt, now).length < WRONG_CODES_PER_ADDRESS;
  return isOpenCode(code, now) && isLeft;
}

/** The database row of a refresh token that a client presents. */
interface PresentedRefreshToken {
  readonly clientId: string | null;
  readonly scope: string;
  readonly expiresAt: Date | null;
  readonly redeemedAt: Date | null;
  /** Time of the sign-in that the token belongs to. */
  readonly signedInAt: Date;
}

type RefreshDecision =
  | { readonly kind: "refused" }
  /**
   * The refresh token was redeemed so long ago that this use cannot be a parallel request of one honest client
   * (RFC 9700, 4.14.2).
   */
  | { readonly kind: "replayed" }
  /** The refresh request asks for scopes that the sign-in did not grant. */
  | { readonly kind: "too_wide" }
  | { readonly kind: "redeem"; readonly scope: string };

/**
 * Decides on the redemption of a refresh token (contract 5.3). Without `scopes`, the new access token gets those
 * scopes of the refresh token that are also in `ceiling`, the scopes for which the client is registered at present.
 */
export function decideRefresh(
  token: PresentedRefreshToken,
  request: {
    clientId: string | null;
    scopes: readonly string[] | undefined;
    ceiling?: readonly string[] | undefined;
  },
  { now, leewayS, maxDays }: { now: Date; leewayS: number; maxDays: number | null },
): RefreshDecision {
  if (token.clientId !== request.clientId) return { kind: "refused" };
  if (token.expiresAt !== null && token.expiresAt <= now) return { kind: "refused" };
  if (secondsToRefresh(token.signedInAt, { now, maxDays }) <= 0) return { kind: "refused" };
  if (token.redeemedAt !== null)
    return { kind: addMs(token.redeemedAt, leewayS * 1000) < now ? "replayed" : "refused" };
  const scopes = request.scopes ?? withinCeiling(token.scope.split(" "), request.ceiling);
  const sources = [token.scope.split(" "), request.ceiling ?? ["*"]];
  const isCovered = sources.every((own) => coversScopes(new Set(own), scopes));
  return isCovered && scopes.length > 0
    ? { kind: "redeem", scope: scopes.join(" ") }
    : { kind: "too_wide" };
}

const DAY_MS = 86_400_000;

/** Returns the time in seconds for which a client may still refresh after a sign-in (contract 5.3). */
export function secondsToRefresh(
  signedInAt: Date,
  { now, maxDays }: { now: Date; maxDays: number | null },
): number {
  if (maxDays === null) return Number.POSITIVE_INFINITY;
  return (addMs(signedInAt, maxDays * DAY_MS).getTime() - now.getTime()) / 1000;
}

/** Returns those of a token's scopes that its client, service or integration still has (`ceiling`). */
export function withinCeiling(
  scopes: readonly string[],
  ceiling: readonly string[] = ["*"],
): readonly string[] {
  if (ceiling.includes("*")) return scopes;
  return scopes.includes("*") ? ceiling : scopes.filter((scope) => ceiling.includes(scope));
}

/**
 * Returns whether a token with the scopes `own` may grant the scopes `wanted`: a token never grants more than it has.
 */
export function coversScopes(own: ReadonlySet<string>, wanted: readonly string[]): boolean {
  return own.has("*") || wanted.every((scope) => own.has(scope));
}
