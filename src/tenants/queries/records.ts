import { eq } from "drizzle-orm";

import type { Tx } from "../../../db/client.ts";
import { companies, plans, stores } from "../../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../../db/schema/providers.ts";

const TABLES = { companies, plans, stores, reviewSites, storeReviewSites };

/** A record of an operator's administration: its table and id. */
export interface RecordKey {
  readonly table: keyof typeof TABLES;
  readonly id: number;
}

/** Locks a record until the commit, so that concurrent updates of it run one after the other. */
export async function lockRecord(tx: Tx, { table, id }: RecordKey): Promise<void> {
  const { id: key } = TABLES[table];
  await tx.select({ id: key }).from(TABLES[table]).where(eq(key, id)).for("no key update");
}
