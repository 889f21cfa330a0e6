import type { SsoErrorReason } from "./model.ts";

/** Values of an SSO callback that are compared with the stored state. */
interface StateCheck {
  /** The id of the SSO connection, from the path of the callback. */
  readonly connectionId: string;
  /** Hash of the secret in the browser's cookie; null if the browser has no cookie. */
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
 * Returns the reason to reject the state of an SSO callback; undefined if the state is valid. The hash of the cookie is
 * compared first, so that a client without the cookie learns nothing and cannot consume the state. `consumesState`
 * decides which results consume it.
 */
export function stateError(
  state: StoredState | undefined,
  { connectionId, browserHash, now }: StateCheck,
): SsoErrorReason | undefined {
  if (state === undefined) return "unknown_state";
  if (state.browserHash !== browserHash) return "foreign_browser";
  if (state.consumedAt !== null) return "replayed_state";
  if (state.expiresAt <= now) return "expired_state";
  // The callback must be that of the state's SSO connection, so that a response of one identity provider is not taken
  // for that of another (RFC 9700, 4.4.2).
  return state.connectionId === connectionId ? undefined : "mixed_up_provider";
}

/** Returns whether an SSO callback consumes the state, by the result of `stateError`. */
export function consumesState(error: SsoErrorReason | undefined): boolean {
  return error === undefined || error === "mixed_up_provider";
}

export interface StoredCode {
  readonly expiresAt: Date;
  readonly consumedAt: Date | null;
  readonly codeChallenge: string | null;
}

/**
 * Returns the reason to reject the one-time code of a single sign-on; undefined if the code is valid. `challenge` is
 * computed from the presented PKCE verifier (RFC 7636, 4.6).
 */
export function codeError(
  code: StoredCode,
  { challenge, now }: { challenge: string | null; now: Date },
): SsoErrorReason | undefined {
  if (code.consumedAt !== null) return "replayed_code";
  if (code.expiresAt <= now) return "expired_code";
  return code.codeChallenge === challenge ? undefined : "wrong_verifier";
}

/** Stored facts about a user that decide whether single sign-on is allowed. */
export interface KnownUser {
  readonly companyId: number;
  readonly isSuperAdmin: boolean;
  /** Whether the user's company and its partner are active. */
  readonly isCompanyActive: boolean;
}

/**
 * Returns the reason to reject a user who signs in for the first time, from the identity provider's statements about
 * the user (contract 4.13).
 */
export function newcomerError(one: {
  readonly hasEmail: boolean;
  readonly isVerified: boolean;
  readonly isOwnDomain: boolean;
}): SsoErrorReason | undefined {
  if (!one.hasEmail) return "no_email";
  if (!one.isVerified) return "unverified_email";
  return one.isOwnDomain ? undefined : "foreign_domain";
}

/**
 * Returns the reason to reject a new user by the rules of `POST /admin/users`. Callers know that no user has exactly
 * this email. So if `isTaken` is true, several users have other spellings of it, and the email identifies none of them.
 */
export function newUserError(one: {
  readonly isAddress: boolean;
  readonly isName: boolean;
  readonly isTaken: boolean;
}): SsoErrorReason | undefined {
  if (!one.isAddress) return "bad_email";
  if (!one.isName) return "bad_name";
  return one.isTaken ? "ambiguous_email" : undefined;
}

/**
 * Returns the reason to reject a first sign-in, by the user who has the email (`candidate`). `isLinked` is true if the
 * user is already linked to another subject of the same issuer.
 */
export function candidateError(
  candidate: (KnownUser & { readonly isLinked: boolean }) | undefined,
  companyId: number,
): SsoErrorReason | undefined {
  if (candidate === undefined) return "unknown_user";
  return userError(candidate, companyId) ?? (candidate.isLinked ? "other_subject" : undefined);
}

/**
 * Returns the reason to reject a user. It is called at every sign-in, because the role and the company of the user may
 * have changed since the last one.
 */
export function userError(user: KnownUser, companyId: number): SsoErrorReason | undefined {
  if (user.isSuperAdmin) return "super_admin";
  if (user.companyId !== companyId) return "foreign_user";
  return user.isCompanyActive ? undefined : "inactive_user";
}
