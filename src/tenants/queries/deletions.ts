import { and, eq, inArray, or, sql } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { instantAfter } from "../../../db/conditions.ts";
import { companies } from "../../../db/schema/companies.ts";
import { companyDeletions } from "../../../db/schema/erasures.ts";
import type { Page } from "../../http/list.ts";
import type { Deletion } from "../erasure-model.ts";

const { companyId, state, reached, requestedBy, requestedAt, dueAt } = companyDeletions;

export async function deletionOf(db: DbOrTx, wanted: number): Promise<Deletion | undefined> {
  const [row] = await db
    .select({ requestedAt, dueAt, state })
    .from(companyDeletions)
    .where(eq(companyId, wanted));
  return row;
}

/** Lists the scheduled deletions of all companies, the first due first. `page.after` is a `deletionKeyOf`. */
export function deletionsOf(db: DbOrTx, page: Page) {
  const { id, type, name } = companies;
  return db
    .select({ company: { id, type, name }, requestedAt, dueAt, state })
    .from(companyDeletions)
    .innerJoin(companies, eq(id, companyId))
    .where(instantAfter(dueAt, companyId, page.after))
    .orderBy(dueAt, companyId)
    .limit(page.limit + 1);
}

/** Schedules the deletion of a company. If it is already scheduled, returns false and changes nothing. */
export async function insertDeletion(
  tx: Tx,
  one: Pick<
    typeof companyDeletions.$inferSelect,
    "companyId" | "requestedBy" | "requestedAt" | "dueAt"
  >,
): Promise<boolean> {
  const { count } = await tx.insert(companyDeletions).values(one).onConflictDoNothing();
  return count > 0;
}

/** Removes the scheduled deletion of a company. Returns false if there is none, or if it has already begun. */
export async function deleteDeletion(tx: Tx, wanted: number): Promise<boolean> {
  const isWaiting = and(eq(companyId, wanted), eq(state, "waiting"));
  return (await tx.delete(companyDeletions).where(isWaiting)).count > 0;
}

/** Locks a company until the commit, and returns whether it is active; undefined if it does not exist. */
export async function lockCompany(tx: Tx, wanted: number): Promise<boolean | undefined> {
  const { id, isActive } = companies;
  const [row] = await tx
    .select({ isActive })
    .from(companies)
    .where(eq(id, wanted))
    .for("no key update");
  return row?.isActive;
}

/** Returns whether the deletion of a company or of its partner is scheduled. */
export async function isToBeDeleted(
  db: DbOrTx,
  { id, partnerId }: { readonly id: number; readonly partnerId: number | null },
): Promise<boolean> {
  const ids = partnerId === null ? [id] : [id, partnerId];
  return (await db.$count(companyDeletions, inArray(companyId, ids))) > 0;
}

/** Finds the first deletion that is due, and locks it until the commit, so that only one process works at it. */
export async function lockNextDeletion(tx: Tx) {
  const [row] = await tx
    .select({ companyId, state, reached, requestedBy, requestedAt })
    .from(companyDeletions)
    .where(or(eq(state, "running"), sql`${dueAt} <= now()`))
    .orderBy(dueAt, companyId)
    .limit(1)
    .for("update");
  return row;
}

export async function saveDeletion(tx: Tx, wanted: number, place: string): Promise<void> {
  await tx
    .update(companyDeletions)
    .set({ state: "running", reached: place })
    .where(eq(companyId, wanted));
}
