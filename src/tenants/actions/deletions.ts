import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { addMs, isoInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { Deletion, NewDeletion } from "../erasure-model.ts";
import type { Company } from "../model.ts";
import * as queries from "../queries/deletions.ts";
import { existing, type AdminDeps, orNotFound } from "./deps.ts";

type Leaving = Pick<Company, "id" | "type">;
const DAY_MS = 86_400_000;

export async function findDeletion(
  { db }: { readonly db: Db },
  { id }: Leaving,
): Promise<Deletion> {
  return orNotFound(await queries.deletionOf(db, id));
}

export function nameErrors(
  { name }: ValidParts<NewDeletion>,
  { name: wanted }: Pick<Company, "name">,
): RuleErrors {
  return {
    name: name === undefined || name === wanted ? undefined : "is not the name of the company",
  };
}

/**
 * Lets a deactivated company be deleted after the waiting time. A second request changes nothing and answers the first
 * one. The lock of the company makes an activation wait, so that no active company is deleted.
 */
export async function requestDeletion(
  { db, clock, config }: Pick<AdminDeps, "db" | "clock" | "config">,
  { principal: actor, requestContext }: Caller,
  { id, type }: Leaving,
): Promise<Deletion> {
  const now = clock.now();
  const dueAt = addMs(now, config.deletionWaitDays * DAY_MS);
  return db.transaction(async (tx) => {
    if (orNotFound(await queries.lockCompany(tx, id))) throw new Problem("company_active");
    const one = { companyId: id, requestedBy: actor.userId, requestedAt: now, dueAt };
    if (await queries.insertDeletion(tx, one)) {
      const details = { company_id: id, type, due_at: isoInstant(dueAt) };
      const action = "COMPANY_DELETION_REQUESTED";
      await recordAudit(tx, { at: now, action, actor, requestContext, details });
    }
    return existing(await queries.deletionOf(tx, id));
  });
}

/** Cancels a deletion whose waiting time is not over, or that has not begun since. */
export async function cancelDeletion(
  { db, clock }: Pick<AdminDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { id, type }: Leaving,
): Promise<void> {
  const now = clock.now();
  await db.transaction(async (tx) => {
    if (!(await queries.deleteDeletion(tx, id))) {
      orNotFound(await queries.deletionOf(tx, id));
      throw new Problem("deletion_running");
    }
    const details = { company_id: id, type };
    const action = "COMPANY_DELETION_CANCELLED";
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
  });
}
