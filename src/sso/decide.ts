import type { RefusalReason } from "./model.ts";

/** What comes to the callback, for the comparison with what the redirect stored. */
interface StateCheck {
  /** From the path. */
  readonly connectionId: string;
  /** Of the secret in the cookie; null if the browser has none. */
  readonly browserHash: string | null;
  readonly now: Date;
}

export interface StoredState {
  readonly connectionId: string;
  readonly browserHash: string;
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
}

/**
 * Why a state does not count; undefined if it does. The browser is compared first, so that whoever does not hold the
 * cookie learns nothing and uses nothing up; after that every look uses the state up (`usesUp`).
 */
export function refuseState(
  state: StoredState | undefined,
  { connectionId, browserHash, now }: StateCheck,
): RefusalReason | undefined {
  if (state === undefined) return "unknown_state";
  if (state.browserHash !== browserHash) return "foreign_browser";
  if (state.consumedAt !== null) return "replayed_state";
  if (state.expiresAt <= now) return "expired_state";
  // RFC 9700, 4.4.2: each provider has a callback of its own.
  return state.connectionId === connectionId ? undefined : "mixed_up_provider";
}

/** Whether this look at a state was the one that it was good for. */
export function usesUp(refusal: RefusalReason | undefined): boolean {
  return refusal === undefined || refusal === "mixed_up_provider";
}

export interface StoredCode {
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
  readonly codeChallenge: string | null;
}

/**
 * Why a one-time code does not count; undefined if it does. `challenge` is made of the verifier that came (RFC 7636,
 * 4.6).
 */
export function refuseCode(
  code: StoredCode,
  { challenge, now }: { challenge: string | null; now: Date },
): RefusalReason | undefined {
  if (code.consumedAt !== null) return "replayed_code";
  if (code.expiresAt <= now) return "expired_code";
  return code.codeChallenge === challenge ? undefined : "wrong_verifier";
}

/** What the provider says of a user who is not linked yet. */
interface Newcomer {
  /** Normalised; null if the provider named none. */
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly domain: string;
}

/** What our rows say of a user. */
export interface KnownUser {
  readonly companyId: number;
  readonly isSuperAdmin: boolean;
  /** The company and the partner above it. */
  readonly isCompanyActive: boolean;
}

/** Contract 4.13: the rules of the first sign-in that judge what the provider says. */
export function refuseNewcomer(
  newcomer: Newcomer,
  domains: readonly string[],
): RefusalReason | undefined {
  if (newcomer.email === null) return "no_email";
  if (!newcomer.emailVerified) return "unverified_email";
  return domains.includes(newcomer.domain) ? undefined : "foreign_domain";
}

/** Judges the user who has the email, if any; `isLinked` says that it is with another subject of the same issuer. */
export function refuseCandidate(
  candidate: (KnownUser & { readonly isLinked: boolean }) | undefined,
  companyId: number,
): RefusalReason | undefined {
  if (candidate === undefined) return "unknown_user";
  return refuseUser(candidate, companyId) ?? (candidate.isLinked ? "other_subject" : undefined);
}

/** Judges the user at every sign-in and not only at the first: role and company may have changed since. */
export function refuseUser(user: KnownUser, companyId: number): RefusalReason | undefined {
  if (user.isSuperAdmin) return "super_admin";
  if (user.companyId !== companyId) return "foreign_user";
  return user.isCompanyActive ? undefined : "inactive_user";
}
