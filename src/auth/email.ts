import { normalEmail } from "../lib/email.ts";
import { type Digest, type DigestKind, digestOf } from "../lib/kind-key.ts";

/**
 * Returns the key under which the sign-in lock and the codes of an email are stored: a digest of its normal form, so that
 * all spellings of a mailbox have one. The typed text itself is not stored, because people sometimes type passwords into
 * email fields.
 */
export function emailDigest(email: string): Digest<"email"> {
  return digestOf("email", normalEmail(email));
}

/** The budgets of mails to an email (contract 4.14 and 4.22). */
export type EmailBudget = Exclude<DigestKind, "email" | "second-factor" | "invitations">;

/** Returns the key of one of the budgets of an email. */
export function budgetDigest<B extends EmailBudget>(budget: B, email: string): Digest<B> {
  return digestOf(budget, normalEmail(email));
}
