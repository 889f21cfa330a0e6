import { and, asc, desc, eq, isNull } from "drizzle-orm";
import { ulid } from "ulid";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { alerts, incidents } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { DISABLED_BY_HAND, type Subscription } from "../model.ts";
import { attemptsWithin, newestFirst } from "./attempts.ts";

/** More say no more about the cause. */
const ATTEMPTS_AT_MOST = 1_000;

const TROUBLE = ["failed", "retry"] as const;

/** Attempts since then that were no success, the newest first. */
export function troubleSince(db: DbOrTx, subscriptionId: string, since: Date) {
  const { id, eventId, startedAt, statusCode, errorCode } = deliveryAttempts;
  const columns = { id, eventId, startedAt, statusCode, errorCode };
  const walks = TROUBLE.map((outcome) =>
    attemptsWithin(db, columns, subscriptionId, { outcome, firstId: ulidFloor(since) })
      .orderBy(desc(id))
      .limit(ATTEMPTS_AT_MOST),
  );
  return newestFirst(walks, ATTEMPTS_AT_MOST);
}

/** When the first attempt failed after the last one that was delivered. */
export async function failingSince(db: DbOrTx, subscriptionId: string): Promise<Date | undefined> {
  const { id, startedAt } = deliveryAttempts;
  const [success] = await attemptsWithin(db, { id }, subscriptionId, { outcome: "delivered" })
    .orderBy(desc(id))
    .limit(1);
  const firsts = TROUBLE.map((outcome) =>
    attemptsWithin(db, { id, startedAt }, subscriptionId, { outcome, firstId: success?.id })
      .orderBy(asc(id))
      .limit(1),
  );
  return (await newestFirst(firsts, TROUBLE.length)).at(-1)?.startedAt;
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
