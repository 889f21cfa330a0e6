import { createHash } from "node:crypto";
import { domainToASCII } from "node:url";

/** How an email is stored and looked up. Postgres takes no NUL in a text, and nobody's address has one. */
export function normaliseEmail(typed: string): string {
  return typed.trim().toLowerCase().replaceAll("\0", "\uFFFD");
}

/**
 * The key that locks and codes are stored by. The text itself is not stored, because people type passwords into email
 * fields.
 */
export function emailDigest(normalisedEmail: string): string {
  return createHash("sha256").update(normalisedEmail).digest("hex");
}

/** The key of one of the budgets of an email. No email has a NUL, so that no email is typed that has the same key. */
export function budgetDigest(budget: string, normalisedEmail: string): string {
  return emailDigest(`${budget}\0${normalisedEmail}`);
}

/** The domain as DNS writes it, which is how `sso_domains` stores it; empty if there is none. */
export function emailDomain(normalisedEmail: string): string {
  const at = normalisedEmail.lastIndexOf("@");
  return at === -1 ? "" : domainToASCII(normalisedEmail.slice(at + 1)).replace(/\.$/, "");
}
