import { and, isNull, or } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { emailCodes, ssoCodes } from "../../../db/schema/sign-in.ts";
import { authorizationCodes, tokens } from "../../../db/schema/tokens.ts";
import { users } from "../../../db/schema/companies.ts";
import { endTokens } from "./tokens.ts";

/** Locks these users' rows until the commit, so that no token can be issued to them meanwhile. */
export async function holdUsersOf(tx: Tx, companyIds: readonly number[]): Promise<number[]> {
  const rows = await tx
    .select({ id: users.id })
    .from(users)
    .where(anyOf(users.companyId, companyIds))
    .orderBy(users.id)
    .for("no key update");
  return rows.map(({ id }) => id);
}

/** Ends all tokens that the users have or are behind; answers how many. */
export function deleteTokensOf(tx: Tx, userIds: readonly number[]): Promise<number> {
  return endTokens(tx, or(anyOf(tokens.userId, userIds), anyOf(tokens.impersonatorId, userIds)));
}

/** The rows stay for the cooldown. */
export async function consumeCodesOf(tx: Tx, userIds: readonly number[], now: Date): Promise<void> {
  await tx
    .update(emailCodes)
    .set({ consumedAt: now })
    .where(and(anyOf(emailCodes.userId, userIds), isNull(emailCodes.consumedAt)));
}

/** What is pending at the authorize page, and between it and a client. */
export async function deleteAuthorizationCodesOf(
  tx: Tx,
  userIds: readonly number[],
): Promise<void> {
  await tx.delete(authorizationCodes).where(anyOf(authorizationCodes.userId, userIds));
}

/** Sign-ins that an identity provider has confirmed, waiting for their exchange. */
export async function consumeSsoCodesOf(
  tx: Tx,
  userIds: readonly number[],
  now: Date,
): Promise<void> {
  await tx
    .update(ssoCodes)
    .set({ consumedAt: now })
    .where(and(anyOf(ssoCodes.userId, userIds), isNull(ssoCodes.consumedAt)));
}
