import { and, desc, eq } from "drizzle-orm";

import { idBefore } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { users } from "../../../db/schema/companies.ts";
import { neverNull } from "../../../db/statement.ts";
import type { Page } from "../../http/list.ts";
import type { Integration } from "../integration-model.ts";

const { id, companyId, name, scopes, createdAt, updatedAt } = users;

/** Condition for integrations that are not deleted. The inactive row of a deleted one stays for the audit log. */
const isLive = and(eq(users.role, "partner_integration"), users.isActive);

const selectIntegrations = (db: DbOrTx) =>
  db.select({ id, companyId, name, scopes, createdAt, updatedAt }).from(users);

/** Lists the integrations of a partner, newest first. */
export async function integrationsOf(
  db: DbOrTx,
  partnerId: number,
  page: Page,
): Promise<Integration[]> {
  const rows = await selectIntegrations(db)
    .where(and(eq(companyId, partnerId), isLive, idBefore(id, page.after)))
    .orderBy(desc(id))
    .limit(page.limit + 1);
  return rows.map((row) => ({ ...row, scopes: neverNull(row.scopes) }));
}

export async function integrationById(
  db: DbOrTx,
  wanted: number,
): Promise<Integration | undefined> {
  const [row] = await selectIntegrations(db).where(and(eq(id, wanted), isLive));
  return row && { ...row, scopes: neverNull(row.scopes) };
}

/** Locks an integration until the commit, and reads it. */
export async function lockIntegration(tx: Tx, wanted: number): Promise<Integration | undefined> {
  await tx.select({ id }).from(users).where(eq(id, wanted)).for("no key update");
  return integrationById(tx, wanted);
}

export function countIntegrations(tx: Tx, partnerId: number): Promise<number> {
  return tx.$count(users, and(eq(companyId, partnerId), isLive));
}

export async function updateIntegration(
  tx: Tx,
  wanted: number,
  one: Pick<Integration, "name" | "scopes" | "updatedAt">,
): Promise<void> {
  await tx
    .update(users)
    .set({ ...one, scopes: [...one.scopes] })
    .where(eq(id, wanted));
}

/** Deletes an integration by deactivating its user. Returns false if it was already deleted. */
export async function endIntegration(tx: Tx, wanted: number, now: Date): Promise<boolean> {
  const { count } = await tx
    .update(users)
    .set({ isActive: false, updatedAt: now })
    .where(and(eq(id, wanted), isLive));
  return count > 0;
}
