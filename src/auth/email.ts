import { createHash } from "node:crypto";
import { domainToASCII } from "node:url";

/**
 * Returns the form in which an email is stored and looked up: trimmed and in lower case. A NUL is replaced, because
 * PostgreSQL accepts no NUL in a text, and no real address contains one.
 */
export function normaliseEmail(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("\0", "\uFFFD");
}

/**
 * Returns the key under which the sign-in lock and the codes of an email are stored. The typed text itself is not
 * stored, because people sometimes type passwords into email fields.
 */
export function emailDigest(normalisedEmail: string): string {
  return createHash("sha256").update(normalisedEmail).digest("hex");
}

/**
 * Returns the key of one of the code budgets of an email. The key contains a NUL, which cannot occur in a normalised
 * email, so that it never equals the key of an email.
 */
export function budgetDigest(budget: string, normalisedEmail: string): string {
  return emailDigest(`${budget}\0${normalisedEmail}`);
}

/** Returns the domain of an email in ASCII form, as the table `sso_domains` stores it; empty if there is none. */
export function emailDomain(normalisedEmail: string): string {
  const at = normalisedEmail.lastIndexOf("@");
  return at === -1 ? "" : domainToASCII(normalisedEmail.slice(at + 1)).replace(/\.$/, "");
}
