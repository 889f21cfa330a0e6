import { emailDomain, normalEmail } from "../lib/email.ts";
import type { Connection } from "./model.ts";

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
