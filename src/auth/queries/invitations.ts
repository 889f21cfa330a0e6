import { and, eq, gt, isNull } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, users } from "../../../db/schema/companies.ts";
import { invitations } from "../../../db/schema/sign-in.ts";
import { isPartnerOfCompany, isUserActive, partners } from "../../../db/tenancy.ts";

const { userId, codeHash, expiresAt } = invitations;

/** Takes the place of the user's last one, which works no more. */
export async function saveInvitation(tx: Tx, one: typeof invitations.$inferInsert): Promise<void> {
  await tx.insert(invitations).values(one).onConflictDoUpdate({ target: userId, set: one });
}

/** Whose invitation has this hash: an active user who has no password yet. */
export async function findInvited(
  db: DbOrTx,
  hash: string,
  now: Date,
): Promise<number | undefined> {
  const [row] = await db
    .select({ userId })
    .from(invitations)
    .innerJoin(users, eq(users.id, userId))
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(codeHash, hash), gt(expiresAt, now), isNull(users.passwordHash), isUserActive));
  return row?.userId;
}

/** False if it is gone: used meanwhile, replaced, or ended by a password that was set in another way. */
export async function consumeInvitation(tx: Tx, hash: string, now: Date): Promise<boolean> {
  const { count } = await tx.delete(invitations).where(and(eq(codeHash, hash), gt(expiresAt, now)));
  return count > 0;
}

export async function deleteInvitationOf(tx: Tx, id: number): Promise<void> {
  await tx.delete(invitations).where(eq(userId, id));
}
