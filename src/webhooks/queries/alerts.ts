import { eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { alertSettings } from "../../../db/schema/alerts.ts";
import { companies } from "../../../db/schema/companies.ts";
import { hasMailbox } from "../../lib/email.ts";

export type SettingsRow = typeof alertSettings.$inferSelect;

const settingsOfPartner = (db: DbOrTx, partnerId: number) =>
  db.select().from(alertSettings).where(eq(alertSettings.partnerId, partnerId));

export async function settingsOf(db: DbOrTx, partnerId: number): Promise<SettingsRow | undefined> {
  const [row] = await settingsOfPartner(db, partnerId);
  return row;
}

/** Locks the alert settings of the partner until the commit. Inserts `fresh` if the partner has none. */
export async function lockSettings(tx: Tx, fresh: SettingsRow): Promise<SettingsRow> {
  await tx.insert(alertSettings).values(fresh).onConflictDoNothing();
  const [row] = await settingsOfPartner(tx, fresh.partnerId).for("update");
  return row ?? fresh;
}

export async function updateSettings(
  tx: Tx,
  { id, ...changes }: Pick<SettingsRow, "id"> & Partial<SettingsRow>,
): Promise<void> {
  await tx.update(alertSettings).set(changes).where(eq(alertSettings.id, id));
}

/** Reads the name of a partner and the appearance of its mails. */
export async function brandOf(db: DbOrTx, partnerId: number) {
  const { name, brandName, primaryColor, whiteLabelEnabled, logoUrl } = companies;
  const [row] = await db
    .select({ name, brandName, primaryColor, whiteLabelEnabled, logoUrl })
    .from(companies)
    .where(eq(companies.id, partnerId));
  if (row === undefined) throw new Error(`There is no partner ${partnerId}.`);
  return row;
}

export type PartnerBrand = Awaited<ReturnType<typeof brandOf>>;

/** Adds an address to the confirmed recipients. Returns false if it is no recipient of the partner. */
export async function addConfirmed(tx: Tx, partnerId: number, email: string): Promise<boolean> {
  const [row] = await settingsOfPartner(tx, partnerId).for("update");
  const named = row?.recipients?.filter((one) => hasMailbox([email], one)) ?? [];
  if (row === undefined || named.length === 0) return false;
  // The address is stored in the spelling of the recipients, because earlier versions compare the spelling and not the
  // normal form.
  const confirmedRecipients = [...new Set([...row.confirmedRecipients, ...named])];
  await updateSettings(tx, { id: row.id, confirmedRecipients });
  return true;
}
