import { and, asc, desc, eq, gte, isNull, or, type SQL, sql } from "drizzle-orm";
import { ulid } from "ulid";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { anyOf } from "../../../db/conditions.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { alerts, incidents } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { rows, statement, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import { openIncidentIds } from "../incident-model.ts";
import { isDisabledByPerson, type Subscription } from "../model.ts";
import { attemptsWithin, firstOfFailures, newestFirst } from "./attempts.ts";
import { blockingEntry } from "./stats.ts";

/** The most incidents that the history reads. */
const MAX_INCIDENTS = 50;
/** The most failed attempts of each outcome that are counted for an incident. */
const MAX_COUNTED = 1_000;

const FAILED_OUTCOMES = ["failed", "retry"] as const;

/**
 * The time at which an incident began. Earlier versions stored only the time at which it was opened, which is used for
 * their incidents.
 */
const beginningOfIncident = sql`coalesce(${incidents.beganAt}, ${incidents.openedAt})`.mapWith(
  incidents.openedAt,
);

const isOpen = (subscriptionId: string) =>
  and(eq(incidents.subscriptionId, subscriptionId), isNull(incidents.endedAt));

/** Finds the start of the first failed attempt after the last delivered one. */
async function failingSince(db: DbOrTx, subscriptionId: string): Promise<Date | undefined> {
  const { id, startedAt } = deliveryAttempts;
  const [success] = await attemptsWithin(db, { id }, subscriptionId, { outcome: "delivered" })
    .orderBy(desc(id))
    .limit(1);
  const firsts = FAILED_OUTCOMES.map((outcome) =>
    attemptsWithin(db, { id, startedAt }, subscriptionId, { outcome, firstId: success?.id })
      .orderBy(asc(id))
      .limit(1),
  );
  return (await newestFirst(firsts, FAILED_OUTCOMES.length)).at(-1)?.startedAt;
}

const ATTEMPTS_PER_ROUND = 4;

/**
 * Finds the start of the current trouble of a subscription, or the start of its open incident if that is earlier
 * (contract 6.17); undefined without trouble.
 */
export async function troubleSince(
  db: DbOrTx,
  one: Pick<Subscription, "id" | "consecutiveFailureCount" | "disabledAt" | "disabledReason">,
): Promise<Date | undefined> {
  const { id, consecutiveFailureCount: failures, disabledAt } = one;
  const isByHand = isDisabledByPerson(one.disabledReason);
  const lost = failures > 0 ? await firstOfFailures(db, id, failures) : undefined;
  // The attempts of the first event that failed permanently are read, because the first of them may be older than the
  // last 2xx, which was the response to another event.
  const attempts = lost ? await lastAttempts(db, id, lost.eventId) : [];
  const times = [
    lost || isByHand ? await failingSince(db, id) : undefined,
    attempts.findLast(({ outcome }) => outcome !== "delivered")?.startedAt,
    (await blockingEntry(db, id))?.startedAt,
    // If a person has disabled the subscription, that is not trouble, so the time of the disabling does not count.
    isByHand ? null : disabledAt,
  ].filter((at) => at != null);
  if (times.length === 0) return undefined;
  const open = await db.select({ at: beginningOfIncident }).from(incidents).where(isOpen(id));
  return [...times, ...open.map(({ at }) => at)].toSorted((a, b) => a.getTime() - b.getTime())[0];
}

/** Returns the attempts of an event's last round, the newest first. */
function lastAttempts(db: DbOrTx, subscription: string, eventId: string) {
  const { id, startedAt, outcome } = deliveryAttempts;
  return attemptsWithin(db, { startedAt, outcome }, subscription, { eventId })
    .orderBy(desc(id))
    .limit(ATTEMPTS_PER_ROUND);
}

/**
 * Records that a subscription was disabled, before it is enabled again. A dispatcher that has not noticed the disabling
 * by then raises its alert from this row (contract 7.17). A disabling by a person raises no alert.
 */
export async function noteDisabling(tx: Tx, subscription: Subscription): Promise<void> {
  const { id: subscriptionId, partnerId, disabledAt } = subscription;
  if (disabledAt === null || isDisabledByPerson(subscription.disabledReason)) return;
  const failures = subscription.consecutiveFailureCount;
  const found = { disabledAt, failures, beganAt: await troubleSince(tx, subscription) };
  const id = ulid(disabledAt.getTime());
  await tx
    .insert(incidents)
    .values({ ...found, id, subscriptionId, partnerId, openedAt: disabledAt, isTold: false })
    .onConflictDoUpdate({
      target: incidents.subscriptionId,
      targetWhere: isNull(incidents.endedAt),
      set: found,
      setWhere: isNull(incidents.disabledAt),
    });
}

/** Reads the alerts of the open incident, and of those that it continues. */
export async function openAlerts(db: DbOrTx, subscriptionId: string) {
  const { id, openedAt, endedAt, endedBy } = incidents;
  const newest = await db
    .select({ id, openedAt, endedAt, endedBy })
    .from(incidents)
    .where(eq(incidents.subscriptionId, subscriptionId))
    .orderBy(desc(id))
    .limit(MAX_INCIDENTS);
  const ids = openIncidentIds(newest);
  if (ids.length === 0) return [];
  const { kind, raisedAt, incidentId } = alerts;
  return db.select({ kind, raisedAt }).from(alerts).where(anyOf(incidentId, ids));
}

/** Reads the beginning and the end of an incident. */
export async function periodOfIncident(db: DbOrTx, incidentId: string) {
  const { id, endedAt } = incidents;
  const [row] = await db
    .select({ beganAt: beginningOfIncident, endedAt })
    .from(incidents)
    .where(eq(id, incidentId));
  return row;
}

/** Reads the incidents of a subscription that have not ended before `since`, the newest first. */
export function incidentsOf(db: DbOrTx, subscriptionId: string, since: Date) {
  const { id, openedAt, endedAt, endedBy, disabledAt } = incidents;
  return db
    .select({ id, openedAt, beganAt: beginningOfIncident, endedAt, endedBy, disabledAt })
    .from(incidents)
    .where(
      and(eq(incidents.subscriptionId, subscriptionId), or(isNull(endedAt), gte(endedAt, since))),
    )
    .orderBy(desc(id))
    .limit(MAX_INCIDENTS);
}

/** The number of failed attempts that an incident reads to find its causes. */
const MAX_ATTEMPTS = 1_000;

/** Reads failed attempts since an instant, the newest first; `more` is a further condition. */
export function failuresSince(
  db: DbOrTx,
  subscriptionId: string,
  { since, more }: { readonly since: Date; readonly more?: SQL | undefined },
) {
  const { id, eventId, startedAt, statusCode, errorCode, tlsReason } = deliveryAttempts;
  const columns = { id, eventId, startedAt, statusCode, errorCode, tlsReason };
  const walks = FAILED_OUTCOMES.map((outcome) =>
    attemptsWithin(db, columns, subscriptionId, { outcome, firstId: ulidFloor(since), more })
      .orderBy(desc(id))
      .limit(MAX_ATTEMPTS),
  );
  return newestFirst(walks, MAX_ATTEMPTS);
}

const failures = statement({
  name: "incidents.failures",
  // Raw SQL, because one statement walks a bounded part of the index of failures for each of many ranges.
  params: {
    id: deliveryAttempts.subscriptionId,
    ranges: rows({
      ord: value("integer"),
      first_id: deliveryAttempts.id,
      end_id: deliveryAttempts.id,
    }),
  },
  columns: {
    ord: value("integer"),
    statusCode: deliveryAttempts.statusCode,
    errorCode: deliveryAttempts.errorCode,
    tlsReason: deliveryAttempts.tlsReason,
    attempts: value("integer"),
  },
  text: ({ id, ranges }) => sql`
    select r.ord, a.status_code as "statusCode", a.error_code as "errorCode",
           a.tls_reason as "tlsReason", count(*)::int as attempts
      from (select * from ${ranges}) r cross join lateral (
             (select status_code, error_code, tls_reason from delivery_attempts
               where subscription_id = ${id} and outcome = 'failed' and outcome <> 'delivered'
                 and id >= r.first_id and id < r.end_id order by id limit (select ${MAX_COUNTED}::bigint))
             union all
             (select status_code, error_code, tls_reason from delivery_attempts
               where subscription_id = ${id} and outcome = 'retry' and outcome <> 'delivered'
                 and id >= r.first_id and id < r.end_id order by id limit (select ${MAX_COUNTED}::bigint))) a
     group by 1, 2, 3, 4 order by 1, 5 desc`,
});

/**
 * Counts the failed attempts of each range by cause, the most frequent cause first. `ord` is the index of the range.
 */
export function failuresWithin(
  db: DbOrTx,
  id: string,
  ranges: readonly { readonly beganAt: Date; readonly endedAt: Date }[],
) {
  const given = ranges.map(({ beganAt, endedAt }, ord) => ({
    ord,
    first_id: ulidFloor(beganAt),
    end_id: ulidFloor(addMs(endedAt, 1)),
  }));
  return db.run(failures, { id, ranges: given });
}
