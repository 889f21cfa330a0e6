import { eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { alertSettings } from "../../../db/schema/alerts.ts";

export type SettingsRow = typeof alertSettings.$inferSelect;

export async function settingsOf(db: DbOrTx, partnerId: number): Promise<SettingsRow | undefined> {
  const [row] = await db.select().from(alertSettings).where(eq(alertSettings.partnerId, partnerId));
  return row;
}

/** The row of the partner, held until the commit; made of these if there is none. */
export async function lockSettings(tx: Tx, fresh: SettingsRow): Promise<SettingsRow> {
  await tx.insert(alertSettings).values(fresh).onConflictDoNothing();
  const [row] = await tx
    .select()
    .from(alertSettings)
    .where(eq(alertSettings.partnerId, fresh.partnerId))
    .for("update");
  return row ?? fresh;
}

export async function updateSettings(
  tx: Tx,
  { id, ...changes }: Pick<SettingsRow, "id"> & Partial<SettingsRow>,
): Promise<void> {
  await tx.update(alertSettings).set(changes).where(eq(alertSettings.id, id));
}
