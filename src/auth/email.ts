import { domainToASCII } from "node:url";

import { type Digest, type DigestKind, digestOf } from "../lib/kind-key.ts";

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
export function emailDigest(email: string): Digest<"email"> {
  return digestOf("email", normaliseEmail(email));
}

/** The budgets of mails to an email (contract 4.14 and 4.22). */
export type EmailBudget = Exclude<DigestKind, "email" | "second-factor" | "invitations">;

/** Returns the key of one of the budgets of an email. */
export function budgetDigest<B extends EmailBudget>(budget: B, email: string): Digest<B> {
  return digestOf(budget, normaliseEmail(email));
}

/** Returns the domain of an email in ASCII form, as the table `sso_domains` stores it; empty if there is none. */
export function emailDomain(normalisedEmail: string): string {
  const at = normalisedEmail.lastIndexOf("@");
  return at === -1 ? "" : domainToASCII(normalisedEmail.slice(at + 1)).replace(/\.$/, "");
}
