import { emailDomain, normalEmail } from "../lib/email.ts";
import type { Connection } from "./model.ts";

/** The identity provider's statements about a person. */
export interface Person {
  readonly email: string | undefined;
  /** Undefined if the identity provider does not say whether the email is verified. */
  readonly emailVerified: boolean | undefined;
  readonly name: string | undefined;
}

/**
 * Returns whether the id_token lacks the email or the statement whether it is verified. Then userinfo has to be
 * requested (contract 4.13).
 */
export function isSilent({ email, emailVerified }: Person): boolean {
  return email === undefined || emailVerified === undefined;
}

/**
 * Adds the statements of userinfo to those of an id_token. If both name an email and the emails differ, or if only the
 * id_token names one, only the name is added. If `email_verified` of the id_token is false, it stays false.
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

/** Finds the domain of an email among those of the SSO connection. */
export function domainOf({ domains }: Pick<Connection, "domains">, email: string | undefined) {
  const wanted = email && emailDomain(normalEmail(email));
  return domains.find(({ domain }) => domain === wanted);
}

/**
 * Returns whether the email of a person counts as verified. If the identity provider says whether it is verified, that
 * statement decides. Otherwise the email counts as verified if the SSO connection has `trust_email` and the domain of
 * the email is proved by DNS (contract 4.13).
 */
export function isVerified(
  connection: Pick<Connection, "domains" | "trustEmail">,
  { email, emailVerified }: Pick<Person, "email" | "emailVerified">,
): boolean {
  const isProved = domainOf(connection, email)?.provedAt != null;
  return emailVerified ?? (connection.trustEmail && isProved);
}
