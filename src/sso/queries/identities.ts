import { and, desc, eq, lt } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ssoIdentities } from "../../../db/schema/sign-in.ts";
import type { Page } from "../../http/list.ts";
import type { IdentityRow } from "../model.ts";

/** Lists the identities of a user at identity providers, newest first. */
export function identitiesOf(db: DbOrTx, userId: number, page: Page): Promise<IdentityRow[]> {
  const isAfterCursor =
    page.after === undefined ? undefined : lt(ssoIdentities.id, Number(page.after));
  return db
    .select()
    .from(ssoIdentities)
    .where(and(eq(ssoIdentities.userId, userId), isAfterCursor))
    .orderBy(desc(ssoIdentities.id))
    .limit(page.limit + 1);
}

export async function findIdentity(
  db: DbOrTx,
  userId: number,
  id: number,
): Promise<IdentityRow | undefined> {
  const isOne = and(eq(ssoIdentities.id, id), eq(ssoIdentities.userId, userId));
  const [row] = await db.select().from(ssoIdentities).where(isOne);
  return row;
}

/** Deletes an identity. Returns false if it was deleted meanwhile. */
export async function deleteIdentity(tx: Tx, id: number): Promise<boolean> {
  return (await tx.delete(ssoIdentities).where(eq(ssoIdentities.id, id))).count > 0;
}
