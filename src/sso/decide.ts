import { emailDomain, normalEmail } from "../lib/email.ts";
import type { Connection, SsoErrorReason } from "./model.ts";

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
 * Returns the reason to reject the state of an SSO callback; undefined if the state is valid. The browser is compared
 * first, so that a client without the cookie learns nothing and cannot consume the state. Every later check consumes
 * the state (`consumesState`).
 */
export function stateError(
  state: StoredState | undefined,
  { connectionId, browserHash, now }: StateCheck,
): SsoErrorReason | undefined {
  if (state === undefined) return "unknown_state";
  if (state.browserHash !== browserHash) return "foreign_browser";
  if (state.consumedAt !== null) return "replayed_state";
  if (state.expiresAt <= now) return "expired_state";
  // The connection of the state must be that of the callback, because each provider has a separate callback
  // (RFC 9700, 4.4.2).
  return state.connectionId === connectionId ? undefined : "mixed_up_provider";
}

/** Returns whether an SSO callback with this result consumes the state. */
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

/** The identity provider's statements about a person. */
export interface Person {
  readonly email: string | undefined;
  /** Undefined if the provider does not say whether the email is verified. */
  readonly emailVerified: boolean | undefined;
  readonly name: string | undefined;
}

/** Returns whether the id_token leaves something to ask the userinfo endpoint about (contract 4.13). */
export function isSilent({ email, emailVerified }: Person): boolean {
  return email === undefined || emailVerified === undefined;
}

/**
 * Adds the statements of userinfo to those of an id_token. An email of the id_token is verified by userinfo only if
 * both name the same address. A `false` of the id_token stands.
 */
export function withUserinfo<P extends Person>(token: P, userinfo: Person): P {
  const name = token.name ?? userinfo.name;
  const isAbout =
    token.email === undefined ||
    (userinfo.email !== undefined && normalEmail(userinfo.email) === normalEmail(token.email));
  if (!isAbout) return { ...token, name };
  const emailVerified = token.emailVerified === false ? false : userinfo.emailVerified;
  return { ...token, name, email: token.email ?? userinfo.email, emailVerified };
}

/** Finds the domain of an email among those of the connection. */
export function domainOf({ domains }: Pick<Connection, "domains">, email: string | undefined) {
  const wanted = email && emailDomain(normalEmail(email));
  return domains.find(({ domain }) => domain === wanted);
}

/**
 * Returns whether an email of a person counts as verified. If the provider does not say it, the connection's
 * `trust_email` decides, and only within domains that DNS proved. A provider that says `false` is believed, because
 * the domain's owner does not answer for an address that its own provider has not verified (contract 4.13).
 */
export function isVerified(
  connection: Pick<Connection, "domains" | "trustEmail">,
  { email, emailVerified }: Pick<Person, "email" | "emailVerified">,
): boolean {
  const isProved = domainOf(connection, email)?.provedAt != null;
  return emailVerified ?? (connection.trustEmail && isProved);
}

/** Stored facts about a user that decide whether single sign-on is allowed. */
export interface KnownUser {
  readonly companyId: number;
  readonly isSuperAdmin: boolean;
  /** Whether the user's company and its partner are active. */
  readonly isCompanyActive: boolean;
}

/** Checks the identity provider's statements about a user who signs in for the first time (contract 4.13). */
export function newcomerError(
  connection: Pick<Connection, "domains" | "trustEmail">,
  newcomer: Pick<Person, "email" | "emailVerified">,
): SsoErrorReason | undefined {
  if (newcomer.email === undefined) return "no_email";
  if (!isVerified(connection, newcomer)) return "unverified_email";
  return domainOf(connection, newcomer.email) === undefined ? "foreign_domain" : undefined;
}

/**
 * Checks a new user by the rules of `POST /admin/users`. An email that is taken is one that several users share, so that
 * it means none of them.
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
 * Checks the user with the email, if there is one, at the first sign-in through the provider. `isLinked` means that
 * the user is linked to another subject of the same issuer.
 */
export function candidateError(
  candidate: (KnownUser & { readonly isLinked: boolean }) | undefined,
  companyId: number,
): SsoErrorReason | undefined {
  if (candidate === undefined) return "unknown_user";
  return userError(candidate, companyId) ?? (candidate.isLinked ? "other_subject" : undefined);
}

/** Checks the user at every sign-in and not only at the first, because role and company may have changed since then. */
export function userError(user: KnownUser, companyId: number): SsoErrorReason | undefined {
  if (user.isSuperAdmin) return "super_admin";
  if (user.companyId !== companyId) return "foreign_user";
  return user.isCompanyActive ? undefined : "inactive_user";
}
