import type { Tx } from "../../../db/client.ts";
import { emailDigest } from "../email.ts";
import * as queries from "../queries/access.ts";
import { forgetLock } from "../queries/locks.ts";

/**
 * Ends everything that users can act by: their tokens, those they hold for others, and codes under way (contract 4.3).
 * Call it in the transaction that deactivates the users, after their rows are held. Answers the number of
 * tokens.
 */
export async function endAccess(tx: Tx, userIds: readonly number[], now: Date): Promise<number> {
  await queries.consumeCodesOf(tx, userIds, now);
  await queries.consumeSsoCodesOf(tx, userIds, now);
  await queries.deleteAuthorizationCodesOf(tx, userIds);
  return queries.deleteTokensOf(tx, userIds);
}

/** Ends the access of everybody in these companies, whose rows it holds. */
export async function endAccessOfCompanies(
  tx: Tx,
  companyIds: readonly number[],
  now: Date,
): Promise<number> {
  return endAccess(tx, await queries.holdUsersOf(tx, companyIds), now);
}

/** Forgets the wrong passwords of an email: the lock lifts, and the next one is as short as the first. */
export async function liftLock(tx: Tx, email: string): Promise<void> {
  await forgetLock(tx, emailDigest(email));
}
