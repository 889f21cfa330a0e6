import { and, desc, eq, gte, isNull, sql } from "drizzle-orm";
import { ulid } from "ulid";

import type { Db, DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { planWalks } from "../../../db/planning.ts";
import { alerts, incidents } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import type { Subscription } from "../model.ts";

/** More say no more about the cause. */
const ATTEMPTS_AT_MOST = 1_000;

/** Attempts since then that were no success, the newest first. The literals are for the partial index. */
export function troubleSince(db: Db, subscriptionId: string, since: Date) {
  const { id, eventId, startedAt, statusCode, errorCode, outcome } = deliveryAttempts;
  return db.transaction(async (tx) => {
    await planWalks(tx);
    const of = (value: "failed" | "retry") =>
      tx
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
  });
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
 * Leaves word of a disabling that ends before a dispatcher has looked, so that it is told all the same (contract 7.17).
 * One that was looked at is in the incident already.
 */
export async function noteDisabling(
  tx: Tx,
  { id, partnerId, consecutiveFailureCount: failures, disabledAt }: Subscription,
): Promise<void> {
  if (disabledAt === null) return;
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
