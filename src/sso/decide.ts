import type { SsoErrorReason } from "./model.ts";

/** The values of a callback that are compared with the stored state. */
interface StateCheck {
  /** The connection id in the path. */
  readonly connectionId: string;
  /** Hash of the secret in the cookie; null if the browser has no cookie. */
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
 * Returns the reason to reject a state; undefined if it is valid. The browser is compared first, so that a client
 * without the cookie learns nothing and cannot consume the state. Every later check consumes it (`consumesState`).
 */
export function stateError(
  state: StoredState | undefined,
  { connectionId, browserHash, now }: StateCheck,
): SsoErrorReason | undefined {
  if (state === undefined) return "unknown_state";
  if (state.browserHash !== browserHash) return "foreign_browser";
  if (state.consumedAt !== null) return "replayed_state";
  if (state.expiresAt <= now) return "expired_state";
  // RFC 9700, 4.4.2: each provider has a separate callback.
  return state.connectionId === connectionId ? undefined : "mixed_up_provider";
}

/** Returns whether this callback consumes the state. */
export function consumesState(error: SsoErrorReason | undefined): boolean {
  return error === undefined || error === "mixed_up_provider";
}

export interface StoredCode {
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
  readonly codeChallenge: string | null;
}

/**
 * Returns the reason to reject a one-time code; undefined if it is valid. `challenge` is computed from the presented
 * verifier (RFC 7636, 4.6).
 */
export function codeError(
  code: StoredCode,
  { challenge, now }: { challenge: string | null; now: Date },
): SsoErrorReason | undefined {
  if (code.consumedAt !== null) return "replayed_code";
  if (code.expiresAt <= now) return "expired_code";
  return code.codeChallenge === challenge ? undefined : "wrong_verifier";
}

/** The provider's statements about a user who is not linked yet. */
interface Newcomer {
  /** Normalised; null if the provider sent no email. */
  readonly email: string | null;
  readonly emailVerified: boolean;
  readonly domain: string;
}

/** The stored facts about a user. */
export interface KnownUser {
  readonly companyId: number;
  readonly isSuperAdmin: boolean;
  /** Whether the company and its partner are active. */
  readonly isCompanyActive: boolean;
}

/** Applies the rules of the first sign-in to the provider's statements (contract 4.13). */
export function newcomerError(
  newcomer: Newcomer,
  domains: readonly string[],
): SsoErrorReason | undefined {
  if (newcomer.email === null) return "no_email";
  if (!newcomer.emailVerified) return "unverified_email";
  return domains.includes(newcomer.domain) ? undefined : "foreign_domain";
}

/**
 * Applies the rules of the first sign-in to the user with the email, if there is one. `isLinked` means that the user
 * is linked to another subject of the same issuer.
 */
export function candidateError(
  candidate: (KnownUser & { readonly isLinked: boolean }) | undefined,
  companyId: number,
): SsoErrorReason | undefined {
  if (candidate === undefined) return "unknown_user";
  return userError(candidate, companyId) ?? (candidate.isLinked ? "other_subject" : undefined);
}

/** Checks the user at every sign-in and not only at the first, because role and company may have changed since. */
export function userError(user: KnownUser, companyId: number): SsoErrorReason | undefined {
  if (user.isSuperAdmin) return "super_admin";
  if (user.companyId !== companyId) return "foreign_user";
  return user.isCompanyActive ? undefined : "inactive_user";
}
