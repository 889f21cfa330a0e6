import { and, asc, eq, sql } from "drizzle-orm";

import type { Db } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
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

/** Starts pending checks, and returns those that no other process has started. */
export async function startChecks(db: Db, ids: readonly string[], at: Date) {
  const { id, subscriptionId, state } = endpointChecks;
  return db
    .update(endpointChecks)
    .set({ state: "running", startedAt: at })
    .where(and(anyOf(id, ids), eq(state, "pending")))
    .returning({ id, subscriptionId });
}

/** Ends running checks. A check whose subscription was deleted has ended already and stays as it is. */
export async function endChecks(
  db: Db,
  ids: readonly string[],
  { finishedAt, ...end }: CheckEnd & { readonly finishedAt: Date },
): Promise<void> {
  await db
    .update(endpointChecks)
    .set({ ...end, finishedAt })
    .where(and(anyOf(endpointChecks.id, ids), eq(endpointChecks.state, "running")));
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
