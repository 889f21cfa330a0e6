import { and, asc, eq, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { anyOf, anyOfQuery } from "../../db/conditions.ts";
import { endpointChecks, isOpenCheck } from "../../db/schema/checks.ts";
import { companies } from "../../db/schema/companies.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";

type Check = typeof endpointChecks.$inferSelect;
/** The result of a check that has ended. */
export type CheckEnd = Pick<Check, "state" | "reason" | "findings">;

/** The most open checks that one look reads. */
const OPEN_CHECKS = 1_000;

/** Reads the pending and running checks of all partners, the oldest first. */
export function openChecks(db: Db) {
  const { id, subscriptionId, state, startedAt } = endpointChecks;
  return db
    .select({ id, subscriptionId, state, startedAt })
    .from(endpointChecks)
    .where(isOpenCheck)
    .orderBy(asc(id))
    .limit(OPEN_CHECKS);
}

export type OpenCheck = Awaited<ReturnType<typeof openChecks>>[number];

/**
 * Starts pending checks, and returns those that no other process has started. A locked row waits for the next look, so
 * that it does not hold up the checks of other partners.
 */
export async function startChecks(db: Db, ids: readonly string[], at: Date) {
  const { id, subscriptionId } = endpointChecks;
  return db
    .update(endpointChecks)
    .set({ state: "running", startedAt: at })
    .where(anyOfQuery(id, unlocked(db, ids, "pending")))
    .returning({ id, subscriptionId });
}

/** Ends the running checks whose process has died, except locked ones, as `startChecks` does. */
export async function endLostChecks(db: Db, ids: readonly string[], at: Date): Promise<void> {
  await db
    .update(endpointChecks)
    .set({ state: "interrupted", reason: "process_ended", finishedAt: at })
    .where(anyOfQuery(endpointChecks.id, unlocked(db, ids, "running")));
}

function unlocked(db: Db, ids: readonly string[], state: Check["state"]) {
  return db
    .select({ id: endpointChecks.id })
    .from(endpointChecks)
    .where(and(anyOf(endpointChecks.id, ids), eq(endpointChecks.state, state)))
    .for("update", { skipLocked: true });
}

/** Ends a running check. If its subscription was deleted, it has ended already and stays as it is. */
export async function endCheck(
  db: Db,
  id: string,
  { finishedAt, ...end }: CheckEnd & { readonly finishedAt: Date },
): Promise<void> {
  await db
    .update(endpointChecks)
    .set({ ...end, finishedAt })
    .where(and(eq(endpointChecks.id, id), eq(endpointChecks.state, "running")));
}

/**
 * Reads the settings of the subscription of a running check; undefined if nothing may be sent: the subscription is not
 * active, its partner is suspended, or the check has ended.
 */
export async function readChecked(db: Db, checkId: string) {
  const { partnerId, webhookUrl, payloadMode, standardWebhooks, sealedSecret, sealedHeaders } =
    webhookSubscriptions;
  const { sealedPreviousSecret: previous, previousSecretExpiresAt: endsAt } = webhookSubscriptions;
  const sealedPreviousSecret = sql`case when ${endsAt} > now() then ${previous} end`.mapWith(
    (text: string) => text,
  );
  const sealed = { sealedSecret, sealedPreviousSecret, sealedHeaders };
  const settings = { partnerId, webhookUrl, payloadMode, standardWebhooks, ...sealed };
  const [row] = await db
    .select(settings)
    .from(endpointChecks)
    .innerJoin(
      webhookSubscriptions,
      and(
        eq(webhookSubscriptions.id, endpointChecks.subscriptionId),
        eq(webhookSubscriptions.state, "active"),
      ),
    )
    .innerJoin(companies, and(eq(companies.id, partnerId), companies.isActive))
    .where(and(eq(endpointChecks.id, checkId), eq(endpointChecks.state, "running")));
  return row;
}
