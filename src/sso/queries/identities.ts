import { and, desc, eq, lt } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ssoDomains, ssoIdentities } from "../../../db/schema/sign-in.ts";
import type { Page } from "../../http/list.ts";
import { emailDomain, normalEmail } from "../../lib/email.ts";
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

/** Whether a connection links an email at a first sign-in: whether it has the domain. The caller must hold the connection. */
export async function canLink(tx: Tx, connectionId: string, email: string): Promise<boolean> {
  const domain = emailDomain(normalEmail(email));
  const isOwn = and(eq(ssoDomains.connectionId, connectionId), eq(ssoDomains.domain, domain));
  return (await tx.$count(ssoDomains, isOwn)) > 0;
}
