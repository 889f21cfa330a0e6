import { and, asc, desc, eq, gt, gte, isNull, sql } from "drizzle-orm";
import { ulid } from "ulid";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { alerts, incidents } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { DISABLED_BY_HAND, type Subscription } from "../model.ts";

/** More say no more about the cause. */
const ATTEMPTS_AT_MOST = 1_000;

/** Attempts since then that were no success, the newest first. The literals are for the partial index. */
export async function troubleSince(db: DbOrTx, subscriptionId: string, since: Date) {
  const { id, eventId, startedAt, statusCode, errorCode, outcome } = deliveryAttempts;
  const of = (value: "failed" | "retry") =>
    db
      .select({ id, eventId, startedAt, statusCode, errorCode })
      .from(deliveryAttempts)
      .where(
        and(
          eq(deliveryAttempts.subscriptionId, subscriptionId),
          sql`${outcome} = ${sql.raw(`'${value}'`)} and ${outcome} <> 'delivered'`,
          gte(id, ulidFloor(since)),
        ),
      )
      .orderBy(desc(id))
      .limit(ATTEMPTS_AT_MOST);
  const found = [...(await of("failed")), ...(await of("retry"))];
  return found.toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, ATTEMPTS_AT_MOST);
}

/** When the first attempt failed after the last one that was delivered. The literals are for the partial index. */
export async function failingSince(db: DbOrTx, subscriptionId: string): Promise<Date | undefined> {
  const { id, startedAt, outcome } = deliveryAttempts;
  const isOwn = eq(deliveryAttempts.subscriptionId, subscriptionId);
  const [success] = await db
    .select({ id })
    .from(deliveryAttempts)
    .where(and(isOwn, eq(outcome, "delivered")))
    .orderBy(desc(id))
    .limit(1);
  const firstOf = (value: "failed" | "retry") =>
    db
      .select({ at: startedAt })
      .from(deliveryAttempts)
      .where(
        and(
          isOwn,
          sql`${outcome} = ${sql.raw(`'${value}'`)} and ${outcome} <> 'delivered'`,
          gt(id, success?.id ?? ""),
        ),
      )
      .orderBy(asc(id))
      .limit(1);
  const found = [...(await firstOf("failed")), ...(await firstOf("retry"))];
  return found.map(({ at }) => at).toSorted((a, b) => a.getTime() - b.getTime())[0];
}

/** What a receiver answered in this attempt. */
export async function excerptOf(
  db: DbOrTx,
  subscriptionId: string,
  attemptId: string,
): Promise<string | null> {
  const { id, responseExcerpt } = deliveryAttempts;
  const [row] = await db
    .select({ responseExcerpt })
    .from(deliveryAttempts)
    .where(and(eq(deliveryAttempts.subscriptionId, subscriptionId), eq(id, attemptId)));
  return row?.responseExcerpt ?? null;
}

/**
 * Records a disabling that ends before a dispatcher has looked, so that its alert is raised all the same (contract 7.17).
 * One that was looked at is in the incident already, and one by hand raises no alert.
 */
export async function noteDisabling(
  tx: Tx,
  { id, partnerId, consecutiveFailureCount: failures, disabledAt, disabledReason }: Subscription,
): Promise<void> {
  if (disabledAt === null || disabledReason === DISABLED_BY_HAND) return;
  await tx
    .insert(incidents)
    .values({
      id: ulid(disabledAt.getTime()),
      subscriptionId: id,
      partnerId,
      openedAt: disabledAt,
      disabledAt,
      failures,
      isTold: false,
    })
    .onConflictDoUpdate({
      target: incidents.subscriptionId,
      targetWhere: isNull(incidents.endedAt),
      set: { disabledAt, failures },
      setWhere: isNull(incidents.disabledAt),
    });
}

/** What was raised in the incident that is open. */
export function openAlerts(db: DbOrTx, subscriptionId: string) {
  const { kind, raisedAt } = alerts;
  return db
    .select({ kind, raisedAt })
    .from(incidents)
    .innerJoin(alerts, eq(alerts.incidentId, incidents.id))
    .where(and(eq(incidents.subscriptionId, subscriptionId), isNull(incidents.endedAt)));
}
