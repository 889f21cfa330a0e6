import { and, desc, eq, lt, sql } from "drizzle-orm";

import { anyOf } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, users } from "../../../db/schema/companies.ts";
import { erasures } from "../../../db/schema/erasures.ts";
import { reviews } from "../../../db/schema/reviews.ts";
import { isPerson } from "../../auth/access/queries.ts";
import type { Page } from "../../http/list.ts";
import type { Counts, Erasure } from "../erasure-model.ts";

const { id, kind, state, requestedBy, requestedAt, finishedAt, counts } = erasures;

const selectErasures = (db: DbOrTx) =>
  db.select({ id, kind, state, requestedBy, requestedAt, finishedAt, counts }).from(erasures);

/** Lists erasures, newest first. */
export function erasuresOf(db: DbOrTx, page: Page): Promise<Erasure[]> {
  return selectErasures(db)
    .where(page.after === undefined ? undefined : lt(id, page.after))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function erasureById(db: DbOrTx, wanted: string): Promise<Erasure | undefined> {
  const [row] = await selectErasures(db).where(eq(id, wanted));
  return row;
}

export async function insertErasure(
  tx: Tx,
  one: Pick<
    typeof erasures.$inferSelect,
    "id" | "kind" | "sealedSelector" | "requestedBy" | "requestedAt"
  >,
): Promise<void> {
  await tx.insert(erasures).values(one);
}

/** Reads the data of a user that an erasure needs; undefined for a service or an integration. */
export async function personOf(db: DbOrTx, wanted: number) {
  const { email, role, companyId } = users;
  const { type: companyType, partnerId } = companies;
  const [row] = await db
    .select({ email, role, companyId, companyType, partnerId })
    .from(users)
    .innerJoin(companies, eq(companies.id, companyId))
    .where(and(eq(users.id, wanted), isPerson));
  return row;
}

/** Returns those of the ids that are not the id of a review of the given partner and account. */
export async function unknownReviews(
  db: DbOrTx,
  ids: readonly number[],
  of: { readonly partnerId: number | undefined; readonly accountId: number | undefined },
): Promise<number[]> {
  const found = await db
    .select({ id: reviews.id })
    .from(reviews)
    .where(
      and(
        anyOf(reviews.id, ids),
        of.partnerId === undefined ? undefined : eq(reviews.partnerId, of.partnerId),
        of.accountId === undefined ? undefined : eq(reviews.accountId, of.accountId),
      ),
    );
  const known = new Set(found.map((row) => row.id));
  return ids.filter((one) => !known.has(one));
}

/** Returns whether there is an erasure that is not done. */
export async function isErasureOpen(db: DbOrTx): Promise<boolean> {
  const isOpen = sql`${state} <> 'done'`;
  return (await db.select({ id }).from(erasures).where(isOpen).limit(1)).length > 0;
}

/** Finds the first erasure that is not done, and locks it until the commit, so that only one process works at it. */
export async function lockNextErasure(tx: Tx) {
  const { sealedSelector, reached } = erasures;
  const [row] = await tx
    .select({ id, kind, state, sealedSelector, reached, counts })
    .from(erasures)
    // The state is a literal, because PostgreSQL uses the partial index only if the statement contains its condition.
    .where(sql`${state} <> 'done'`)
    .orderBy(id)
    .limit(1)
    .for("update");
  return row;
}

/**
 * Stores the progress of an erasure. If `reached` is undefined, the erasure is done, and the sealed `Selector` is
 * removed from its row.
 */
export async function saveErasure(
  tx: Tx,
  wanted: string,
  one: { readonly reached: string | undefined; readonly counts: Counts },
): Promise<void> {
  const { reached } = one;
  const set =
    reached === undefined
      ? ({ state: "done", finishedAt: sql`now()`, sealedSelector: null, reached: null } as const)
      : ({ state: "running", reached } as const);
  await tx
    .update(erasures)
    .set({ ...set, counts: one.counts })
    .where(eq(id, wanted));
}
