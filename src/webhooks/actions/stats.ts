import type { Tx } from "../../../db/client.ts";
import { serverTime, tryJobLock } from "../../../db/server.ts";
import { addMs } from "../../lib/clock.ts";
import { ALERT_KINDS, type AlertKind } from "../../outbox/alert.ts";
import {
  causesOf,
  type Incident,
  incidentStepMs,
  type PastIncident,
  pastIncidents,
} from "../incident-model.ts";
import { conditionOf, type StepCounts } from "../stats.ts";
import type { Subscription } from "../model.ts";
import { attemptsById, firstOfFailures } from "../queries/attempts.ts";
import * as counting from "../queries/count-stats.ts";
import { subscriptionById } from "../queries/subscriptions.ts";
import * as incidents from "../queries/incidents.ts";
import * as queries from "../queries/stats.ts";
import { type Health, quarantinedOf, type StatsPoint } from "../stats-model.ts";
import {
  BUCKET_MS,
  bucketFloor,
  type CountedAttempts,
  LEVELS_MS,
  type Range,
  scaleUp,
  tally,
} from "../stats.ts";
import type { WebhookDeps } from "./deps.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

type Deps = Pick<WebhookDeps, "db" | "clock">;

/**
 * Reads the health of a subscription (contract 6.17). `known` saves a query if the caller has just read
 * `countedUntil`.
 */
export async function showHealth(
  { db, clock }: Deps,
  subscription: Subscription,
  known?: { readonly countedUntil: Date | null },
): Promise<Health> {
  const now = clock.now();
  const dayAgo = addMs(now, -DAY_MS);
  const since = bucketFloor(dayAgo);
  // The last hour is counted in steps of five minutes, and the rest of the last 24 hours in a single step.
  const hour = hourAgo(now);
  const range = { since, until: addMs(now, 1), stepMs: BUCKET_MS, origin: hour };
  const counted = known === undefined ? await queries.countedUntil(db) : known.countedUntil;
  const where = queries.countRange(subscription.id, range, counted ?? since, now);
  const row = await queries.healthOf(db, { ...where, expiredSince: dayAgo });
  const isActive = subscription.state === "active";
  const day = tally(row.counts);
  const recent = row.counts.filter(({ at }) => at >= hour);
  const { consecutiveFailureCount: failures } = subscription;
  const { queued, oldestRecordedAt: oldest, lastStartedAt: lastSuccessStartedAt } = row;
  const figures = { ...row, lastSuccessStartedAt, consecutiveFailureCount: failures };
  const quarantined = isActive ? row.quarantined.map(quarantinedOf) : [];
  return {
    condition: isActive
      ? conditionOf({ ...figures, quarantined, steps: stepsOf(recent, hour, now) }, now)
      : null,
    pending: isActive ? queued : 0,
    held: isActive ? 0 : queued,
    waitingForBatch: row.waitingForBatch,
    oldestPendingAgeS: oldest === null ? null : ageS(oldest, now),
    blockedBy: row.blockedBy,
    blockedSince: row.blockedSince,
    blockedAttempts: row.blockedAttempts,
    lastSuccessAt: lastSuccessStartedAt && addMs(lastSuccessStartedAt, row.lastDurationMs ?? 0),
    successRate1h: rateOf(tally(recent)),
    successRate24h: rateOf(day),
    latencyMs24h: day.latency,
    expired24h: row.expired,
    quarantined,
    outageSince: isActive ? row.outageSince : null,
    firstFailure: (failures > 0 && (await firstOfFailures(db, subscription.id, failures))) || null,
  };
}

/** Computes the share of attempts answered 2xx; null without attempts. */
function rateOf({ successes, failures }: StepCounts): number | null {
  return successes + failures === 0 ? null : successes / (successes + failures);
}

type DatedCounts = CountedAttempts & { readonly at: Date };

/** Sums the attempts of each step from `since` on, including steps without attempts. */
function stepsOf(counts: readonly DatedCounts[], since: Date, now: Date) {
  const byStep = Map.groupBy(counts, ({ at }) => at.getTime());
  const steps: StepCounts[] = [];
  for (let at = since; at <= now; at = addMs(at, BUCKET_MS))
    steps.push(tally(byStep.get(at.getTime()) ?? []));
  return steps;
}

function ageS(at: Date, now: Date): number {
  return Math.max(0, Math.floor((now.getTime() - at.getTime()) / 1000));
}

/** Reads the stats of a range: one point per step, also for steps without attempts (contract 6.18). */
export async function showStats(
  { db, clock }: Deps,
  { id }: Pick<Subscription, "id">,
  { isByEvent = false, ...range }: Range & { readonly isByEvent?: boolean },
): Promise<StatsPoint[]> {
  const now = clock.now();
  const counted = (await queries.countedUntil(db)) ?? range.since;
  const [counts, backlogs, read] = await Promise.all([
    queries.readCounts(db, queries.countRange(id, range, counted, now)),
    queries.backlogs(db, id, range),
    isByEvent ? queries.eventCounts(db, id, range, now) : undefined,
  ]);
  const readAt = read && Map.groupBy(read, (row) => row.at.getTime());
  const countsAt = Map.groupBy(counts, (row) => row.at.getTime());
  const backlogAt = new Map(backlogs.map((row) => [row.at.getTime(), row.entries]));
  const points: StatsPoint[] = [];
  for (let at = range.since; at < range.until; at = addMs(at, range.stepMs)) {
    const { successes, failures, latency } = tally(countsAt.get(at.getTime()) ?? []);
    const backlog = backlogAt.get(at.getTime()) ?? 0;
    const events = readAt && scaleUp(readAt.get(at.getTime()) ?? [], successes + failures);
    points.push({ at, successes, failures, latencyMs: latency, backlog, events });
  }
  return points;
}

/**
 * Time in milliseconds after the end of a bucket at which its attempts are counted. Attempts are committed only after
 * they have ended, so the next run counts the bucket once more.
 */
const COUNT_AFTER_MS = 60_000;
/** The longest period, in milliseconds, that one transaction counts. */
const CHUNK_MS = 6 * HOUR_MS;

interface CountResult {
  readonly rows: number;
  /** Set if further buckets have ended and are not counted yet. */
  readonly next?: string | undefined;
  /** The instant up to which attempts are counted; absent while another process counts. */
  readonly until?: Date;
}

/**
 * Counts the next buckets that have ended by `now`, in one transaction. If several processes call this at the same
 * time, only one of them counts.
 */
export async function countStats(
  deps: Pick<WebhookDeps, "db"> & {
    readonly config: Pick<WebhookDeps["config"], "retentionDays">;
  },
  now?: Date,
): Promise<CountResult> {
  const at = now ?? (await serverTime(deps.db));
  const end = bucketFloor(addMs(at, -COUNT_AFTER_MS));
  const oldest = addMs(bucketFloor(at), -deps.config.retentionDays * DAY_MS);
  return deps.db.transaction((tx) => countNext(tx, { oldest, end }));
}

async function countNext(
  tx: Tx,
  { oldest, end }: { readonly oldest: Date; readonly end: Date },
): Promise<CountResult> {
  if (!(await tryJobLock(tx, "stats"))) return { rows: 0 };
  const counted = (await queries.countedUntil(tx)) ?? (await counting.firstAttemptAt(tx)) ?? end;
  if (counted >= end) return { rows: 0, until: counted };
  const since = bucketFloor(addMs(counted < oldest ? oldest : counted, -BUCKET_MS));
  const chunkEnd = addMs(since, CHUNK_MS);
  const until = chunkEnd < end ? chunkEnd : end;
  const rows = await counting.countAttempts(tx, { since, until, stepMs: BUCKET_MS, origin: since });
  await sumUp(tx, since, until);
  if (until >= end) {
    await counting.countBacklogs(tx, addMs(end, -BUCKET_MS));
    // Stats are kept for a day longer than the retention time, because a bucket of a whole day may begin before the
    // retention time and end within it.
    await counting.dropStats(tx, addMs(oldest, -DAY_MS));
  }
  await counting.moveProgress(tx, until);
  return { rows, until, next: until < end ? "" : undefined };
}

/** Sums buckets of an hour from those of five minutes, and buckets of a day from those of an hour. */
async function sumUp(tx: Tx, since: Date, until: Date): Promise<void> {
  const rising = LEVELS_MS.toReversed();
  for (const [i, stepMs] of rising.entries()) {
    const fromMs = rising[i - 1];
    if (fromMs === undefined) continue;
    const origin = bucketFloor(since, stepMs);
    await counting.sumBuckets(tx, { since: origin, until, stepMs, origin }, fromMs);
  }
}

/** Reads the incidents of the retention time that have ended (contract 6.17). */
export async function showPastIncidents(
  { db, clock, config }: Deps & { readonly config: Pick<WebhookDeps["config"], "retentionDays"> },
  { id }: Pick<Subscription, "id">,
): Promise<PastIncident[]> {
  const since = addMs(clock.now(), -config.retentionDays * DAY_MS);
  const past = pastIncidents(await incidents.incidentsOf(db, id, since));
  const counted = Map.groupBy(await incidents.failuresWithin(db, id, past), ({ ord }) => ord);
  return past.map((one, ord) => {
    const causes = counted.get(ord) ?? [];
    const [most] = causes;
    return {
      ...one,
      failedAttempts: causes.reduce((sum, { attempts }) => sum + attempts, 0),
      statusCode: most?.statusCode ?? null,
      errorCode: most?.errorCode ?? null,
      tlsReason: most?.tlsReason ?? null,
    };
  });
}

/** Orders alerts that were raised at the same instant, the most severe last. */
const severity = ({ kind }: { readonly kind: AlertKind }) => ALERT_KINDS.indexOf(kind);

/**
 * Reads what a mail about an incident says of the subscription and of the incident's time, as the API shows them;
 * undefined if the subscription was deleted. `endedAt` is null while the incident is open.
 */
export async function healthSummaryOf(
  deps: Deps,
  { id, partnerId, incidentId }: Pick<Subscription, "id" | "partnerId"> & { incidentId: string },
) {
  const found = await subscriptionById(deps.db, partnerId, id);
  if (found === undefined) return undefined;
  const { condition, successRate1h, pending, held } = await showHealth(deps, found);
  const { beganAt, endedAt = null } = (await incidents.periodOfIncident(deps.db, incidentId)) ?? {};
  const since = endedAt === null ? await incidents.troubleSince(deps.db, found) : beganAt;
  const retry = condition === null ? undefined : await queries.blockingEntry(deps.db, id);
  return { condition, successRate1h, since, endedAt, queued: pending + held, retry };
}

/** The start of the last hour, from which the success rate of an hour is counted. */
const hourAgo = (now: Date) => bucketFloor(addMs(now, -HOUR_MS));

/**
 * Reads the present incident of a subscription: its beginning, causes and alerts (contract 6.17). While the subscription
 * is neither failing nor disabled, the causes are those of the failed attempts that the success rate of the last hour
 * counts, or since the beginning if that is earlier.
 */
export async function showIncident(deps: Deps, subscription: Subscription): Promise<Incident> {
  const { db, clock } = deps;
  const { id } = subscription;
  const alerts = (await incidents.openAlerts(db, id)).toSorted(
    (a, b) => a.raisedAt.getTime() - b.raisedAt.getTime() || severity(a) - severity(b),
  );
  const began = await incidents.troubleSince(db, subscription);
  const now = clock.now();
  const hour = hourAgo(now);
  const isLong = began !== undefined && began < hour;
  const { condition } = await showHealth(deps, subscription);
  const isOfHour = !isLong && condition !== null && condition !== "failing";
  const since = isOfHour ? hour : began;
  if (since === undefined)
    return { since: null, lastAnswer: null, step: BUCKET_MS / 1000, causes: [], alerts };
  const more = isOfHour ? queries.NO_TEST_ATTEMPT : undefined;
  const attempts = await incidents.failuresSince(db, id, { since, more });
  const [last] = await attemptsById(
    db,
    id,
    attempts.slice(0, 1).map((one) => one.id),
  );
  const stepMs = incidentStepMs(since, now);
  return {
    since: began ?? null,
    lastAnswer: last === undefined ? null : { ...last, at: last.startedAt },
    step: stepMs / 1000,
    causes: causesOf(attempts, { since, stepMs, now }),
    alerts,
  };
}
