import { desc, eq } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { idBefore } from "../../../db/conditions.ts";
import { violatesUnique } from "../../../db/errors.ts";
import { onlyRow } from "../../../db/statement.ts";
import { reviewSites } from "../../../db/schema/providers.ts";
import type { Page } from "../../http/list.ts";
import type { Provider } from "../model.ts";

const { id, slug, name } = reviewSites;

/** Newest first. */
export function providersOf(db: DbOrTx, page: Page): Promise<Provider[]> {
  return db
    .select({ id, slug, name })
    .from(reviewSites)
    .where(idBefore(id, page.after))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function providerById(db: DbOrTx, wanted: number): Promise<Provider | undefined> {
  const [row] = await db.select({ id, slug, name }).from(reviewSites).where(eq(id, wanted));
  return row;
}

export async function hasSlug(db: DbOrTx, wanted: string): Promise<boolean> {
  const rows = await db.select({ id }).from(reviewSites).where(eq(slug, wanted));
  return rows.length > 0;
}

export async function insertProvider(
  tx: Tx,
  one: Omit<Provider, "id">,
  sealedSecret: string,
): Promise<number> {
  const row = { slug: one.slug, name: one.name, sealedSecret };
  return onlyRow(await tx.insert(reviewSites).values(row).returning({ id })).id;
}

export function isSlugTaken(error: unknown): boolean {
  return violatesUnique(error, "review_sites_slug_key");
}

export async function replaceSecret(tx: Tx, wanted: number, sealedSecret: string): Promise<void> {
  await tx.update(reviewSites).set({ sealedSecret }).where(eq(id, wanted));
}
