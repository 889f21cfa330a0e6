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
import { holdCodeLimits, saveIssues } from "../queries/codes.ts";
import { countOpenInvitations } from "../queries/users.ts";

/**
 * Counts a mail that asks an address to confirm alerts of the partner: one more mail to the address, and one more to
 * a stranger by the partner, as its invitations are. Throws `rate_limited` after too many.
 */
export async function countConfirmation(
  tx: Tx,
  { partnerId, address, now }: { partnerId: number; address: string; now: Date },
): Promise<void> {
  await take(tx, digestOf("invitations", partnerId), { limits: INVITATIONS_OF_PARTNER, now });
  await countMailTo(tx, address, now);
}

type Limits = Parameters<typeof nextMailAt>[1];

/**
 * Counts a mail to the address that another user causes. Throws `rate_limited` if the address got too many. The row of
 * the budget stays locked until the commit, so that concurrent requests see each other's mails.
 */
export function countMailTo(tx: Tx, address: string, now: Date): Promise<void> {
  return take(tx, budgetDigest("mails", address), { limits: MAILS_TO_ADDRESS, now });
}

/**
 * Counts an invitation by a user of the partner. Throws `rate_limited` after too many in an hour, and `limit_reached`
 * while too many others are open. The lock on the budget makes invitations of a partner take turns.
 */
export async function countInvitationOf(
  tx: Tx,
  { partnerId, userId, now }: { partnerId: number; userId: number; now: Date },
): Promise<void> {
  const budget = digestOf("invitations", partnerId);
  await take(tx, budget, { limits: INVITATIONS_OF_PARTNER, now });
  if ((await countOpenInvitations(tx, { partnerId, userId, now })) < OPEN_INVITATIONS) return;
  const message = `${OPEN_INVITATIONS} invitations are open; deactivate people who will not accept theirs.`;
  throw new Problem("limit_reached", { message });
}

async function take(
  tx: Tx,
  digest: Digest<"mails" | "invitations">,
  { limits, now }: { readonly limits: Limits; readonly now: Date },
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
