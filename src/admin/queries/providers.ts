import type { DbOrTx, Tx } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/errors.ts";
import type { Page } from "../../http/list.ts";
import type { Provider } from "../model.ts";

/** Newest first. */
export async function providersOf(db: DbOrTx, page: Page): Promise<Provider[]> {
  const { sql } = db;
  const before = page.after === undefined ? sql`` : sql`where id < ${Number(page.after)}::bigint`;
  return sql<Provider[]>`
    select id, slug, name from review_sites ${before} order by id desc limit ${page.limit + 1}`;
}

export async function providerById(db: DbOrTx, id: number): Promise<Provider | undefined> {
  const [row] = await db.sql<Provider[]>`select id, slug, name from review_sites where id = ${id}`;
  return row;
}

export async function hasSlug(db: DbOrTx, slug: string): Promise<boolean> {
  const rows = await db.sql`select 1 from review_sites where slug = ${slug}`;
  return rows.length > 0;
}

export async function insertProvider(
  tx: Tx,
  one: Omit<Provider, "id">,
  sealedSecret: string,
): Promise<number> {
  const [row] = await tx.sql<[{ id: number }]>`
    insert into review_sites (slug, name, sealed_secret) values (${one.slug}, ${one.name}, ${sealedSecret})
    returning id`;
  return row.id;
}

export function isSlugTaken(error: unknown): boolean {
  return violatesUnique(error, "review_sites_slug_key");
}

export async function replaceSecret(tx: Tx, id: number, sealedSecret: string): Promise<void> {
  await tx.sql`update review_sites set sealed_secret = ${sealedSecret} where id = ${id}`;
}
