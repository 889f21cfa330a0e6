import type { Tx } from "../../../db/client.ts";
import { type Digest, digestOf } from "../../lib/kind-key.ts";
import { Problem } from "../../lib/problem.ts";
import {
  INVITATIONS_OF_PARTNER,
  MAILS_TO_ADDRESS,
  nextMailAt,
  OPEN_INVITATIONS,
  retryAfterS,
  withinWindow,
} from "../decide.ts";
import { budgetDigest } from "../email.ts";
import { holdCodeLimits, saveIssues } from "./code-queries.ts";
import { countOpenInvitations } from "../user-queries.ts";

/**
 * Counts a mail that asks an address to confirm that it receives alerts of the partner. The mail counts against the
 * limit of the address. It also counts against the partner's limit of invitations, because both kinds of mail go to
 * strangers. Throws `rate_limited` if a limit is reached.
 */
export async function countConfirmation(
  tx: Tx,
  { partnerId, address, now }: { partnerId: number; address: string; now: Date },
): Promise<void> {
  await take(tx, digestOf("invitations", partnerId), { limits: INVITATIONS_OF_PARTNER, now });
  await countMailTo(tx, address, now);
}

type MailLimits = Parameters<typeof nextMailAt>[1];

/**
 * Counts a mail that another user causes against the limit of the mail's address. Throws `rate_limited` if that limit
 * is reached. The row of the budget stays locked until the commit, so that concurrent requests count each other's
 * mails.
 */
export function countMailTo(tx: Tx, address: string, now: Date): Promise<void> {
  return take(tx, budgetDigest("mails", address), { limits: MAILS_TO_ADDRESS, now });
}

/**
 * Counts an invitation by a user of the partner. Throws `rate_limited` if the partner has sent too many invitations in
 * an hour, and `limit_reached` if too many invitations of the partner are open. The lock on the budget serialises the
 * invitations of a partner.
 */
export async function countInvitationOf(
  tx: Tx,
  { partnerId, userId, now }: { partnerId: number; userId: number; now: Date },
): Promise<void> {
  const budget = digestOf("invitations", partnerId);
  await take(tx, budget, { limits: INVITATIONS_OF_PARTNER, now });
  if ((await countOpenInvitations(tx, { partnerId, userId, now })) < OPEN_INVITATIONS) return;
  const message = `The limit of ${OPEN_INVITATIONS} open invitations is reached; deactivate users who will not accept theirs.`;
  throw new Problem("limit_reached", { message });
}

async function take(
  tx: Tx,
  digest: Digest<"mails" | "invitations">,
  { limits, now }: { readonly limits: MailLimits; readonly now: Date },
): Promise<void> {
  const { issuedAt } = await holdCodeLimits(tx, digest, now);
  const until = nextMailAt(issuedAt, limits, now);
  if (until !== undefined)
    throw new Problem("rate_limited", {
      headers: { "Retry-After": String(retryAfterS(until, now)) },
      message: "Too many mails of this kind were sent; try again later.",
    });
  await saveIssues(tx, digest, [...withinWindow(issuedAt, now), now]);
}
