import { normalEmail } from "../lib/email.ts";
import { type Digest, type DigestKind, digestOf } from "../lib/kind-key.ts";

/**
 * Returns the key under which the sign-in lock and the codes of an email are stored. It is a digest of the email's
 * normal form, so that all spellings of a mailbox share one key. The typed text itself is not stored, because people
 * sometimes type passwords into email fields.
 */
export function emailDigest(email: string): Digest<"email"> {
  return digestOf("email", normalEmail(email));
}

/** The budgets that limit the mails to one email address (contract 4.14 and 4.22). */
export type EmailBudget = Exclude<DigestKind, "email" | "second-factor" | "invitations">;

export function budgetDigest<B extends EmailBudget>(budget: B, email: string): Digest<B> {
  return digestOf(budget, normalEmail(email));
}
