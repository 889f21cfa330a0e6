import { eq, inArray } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { companies, stores, users } from "../../../db/schema/companies.ts";
import { storeReviewSites } from "../../../db/schema/providers.ts";

/** The kinds of records that belong to a tenant. */
export type OwnedKind = "company" | "user" | "store" | "connection";

/** Finds the company that a record belongs to; undefined for one that does not exist. */
export async function companyOfRecord(
  db: DbOrTx,
  kind: OwnedKind,
  id: number,
): Promise<number | undefined> {
  const [company] = await db
    .select({ id: companies.id })
    .from(companies)
    .where(inArray(companies.id, companyOf(db, kind, id)));
  return company?.id;
}

function companyOf(db: DbOrTx, kind: OwnedKind, id: number) {
  switch (kind) {
    case "company":
      return [id];
    case "user":
      return db.select({ id: users.companyId }).from(users).where(eq(users.id, id));
    case "store":
      return db.select({ id: stores.accountId }).from(stores).where(eq(stores.id, id));
    case "connection":
      return db
        .select({ id: stores.accountId })
        .from(storeReviewSites)
        .innerJoin(stores, eq(stores.id, storeReviewSites.storeId))
        .where(eq(storeReviewSites.id, id));
  }
}
