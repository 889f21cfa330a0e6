import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import { DISABLE_AFTER_FAILURES } from "../../dispatcher/actor/decide.ts";
import type { CommitResult } from "../../dispatcher/store/attempt-queries.ts";
import type { Monitor } from "./monitor.ts";
import { REFUSED, SqlError, type Session } from "./network.ts";
import { moveOf, noteEnd } from "./log.ts";
import {
  type AttemptRow,
  type DispatcherRow,
  type SettledRow,
  type SubscriptionRow,
  type Tables,
} from "./tables.ts";
import { NAME } from "./receivers.ts";
import type { World } from "./world.ts";

interface Commit {
  readonly world: World;
  readonly tables: Tables;
  readonly monitor: Monitor;
  readonly dispatcherId: string;
  readonly records: readonly AttemptRecord[];
  /** The time of the commit by the monotonic clock of the process. */
  readonly monotonicMs: number;
}

/** The `lock_timeout` of the real statement. */
const LOCK_TIMEOUT_MS = 100;

const NOTHING: CommitResult = { fenced: true, inactive: [], disabled: [] };

/**
 * Simulates `commitAttempts`: locks the lease, takes time, and then changes everything at one instant. `inactive` is
 * that of the beginning, as in the snapshot of the real statement.
 */
export async function commitAttempts(commit: Commit, session: Session): Promise<CommitResult> {
  const { world, tables, dispatcherId, records } = commit;
  const lease = leaseOf(tables, dispatcherId);
  if (lease === undefined) return NOTHING;
  const touched = subscriptionsOf(commit);
  const inactive = touched.filter((one) => one.state !== "active").map((one) => one.id);
  lease.holders += 1;
  // The value of `now()` in the whole transaction.
  const nowMs = world.postgresMs;
  try {
    await session.work(world.random.latency(3, 60) + world.settings.rowMs * records.length);
    await waitForRows(commit, touched, session);
    // A commit that may disable a subscription takes longer.
    if (records.some((record) => record.decision.kind === "failed"))
      await session.pass(world.random.latency(2, 30));
    const settled = moveEntries(commit, nowMs);
    const disabled = countFailures(world, settled);
    if (world.traced) world.trace(dispatcherId, `commits ${records.map(describe).join(", ")}`);
    return { fenced: false, inactive: [...inactive, ...disabled], disabled };
  } finally {
    lease.holders -= 1;
    for (const one of touched) commit.monitor.checkCounter(one);
  }
}

/** Fails like the real statement: after its lock_timeout, or for a record that PostgreSQL rejects. */
async function waitForRows(
  { world, records }: Commit,
  touched: readonly SubscriptionRow[],
  session: Session,
): Promise<void> {
  const untilMs = Math.max(...touched.map((one) => one.lockedUntilMs));
  const waitMs = untilMs - world.nowMs;
  if (waitMs > 0) {
    await session.work(Math.min(waitMs, LOCK_TIMEOUT_MS));
    if (waitMs > LOCK_TIMEOUT_MS) throw new SqlError("55P03");
  }
  const refused = touched.find(({ id, refused: sequence }) =>
    records.some((one) => one.subscriptionId === id && one.sequence === sequence),
  );
  if (refused !== undefined) throw new SqlError(REFUSED);
}

/** Returns the row that a commit locks; undefined if the lease of its dispatcher has expired. */
export function leaseOf(tables: Tables, dispatcherId: string): DispatcherRow | undefined {
  return tables.dispatchers.get(dispatcherId);
}

function subscriptionsOf({ tables, records }: Commit): SubscriptionRow[] {
  return [...new Set(records.map((record) => record.subscriptionId))].map((id) =>
    tables.subscription(id),
  );
}

interface Settled {
  readonly subscription: SubscriptionRow;
  readonly row: SettledRow;
}

function moveEntries(commit: Commit, nowMs: number): Settled[] {
  const { tables, records, world, monitor, dispatcherId } = commit;
  const settled: Settled[] = [];
  records.forEach((record) => {
    const subscription = tables.subscription(record.subscriptionId);
    const isRepeat = subscription.attempts.has(record.id);
    const dueAtMs = dueAt(record, commit.monotonicMs, nowMs);
    const isStored = keepsResponse(tables, subscription, record);
    const isNamed = isStored && record.responseExcerpt === NAME;
    if (!isRepeat)
      subscription.attempts.set(record.id, { ...attemptRow(record, dueAtMs), isNamed });
    const { moves, apply } = moveOf(subscription, record, dueAtMs);
    monitor.committing({ dispatcherId, record, subscription, moves, isRepeat, dueAtMs });
    const { kind } = record.decision;
    const ended = apply();
    if (ended === undefined || kind === "retry" || kind === "interrupted") return;
    const row = noteEnd(subscription, ended, { state: kind, reason: null }, world.nowMs);
    settled.push({ subscription, row });
  });
  return settled;
}

/**
 * Returns the due time of a retry by the clock of PostgreSQL: the rest of its delay from now. Null if there is no
 * retry.
 */
function dueAt(record: AttemptRecord, monotonicMs: number, nowMs: number): number | null {
  const { decision, endedMs } = record;
  if (decision.kind !== "retry") return null;
  return Math.round(nowMs + endedMs + decision.delayMs - monotonicMs);
}

function attemptRow(
  record: AttemptRecord,
  nextAttemptAtMs: number | null,
): Omit<AttemptRow, "isNamed"> {
  const { eventId, sequence, round, attempt, decision } = record;
  return { eventId, sequence, round, attempt, outcome: decision.kind, nextAttemptAtMs };
}

/** Whether the response of an attempt is stored: its event was not erased after its load. */
export function keepsResponse(
  { erasedMs }: Pick<Tables, "erasedMs">,
  { erasures }: Pick<SubscriptionRow, "erasures">,
  record: Pick<AttemptRecord, "erasures" | "eventId">,
): boolean {
  return record.erasures === erasures || !erasedMs.has(record.eventId);
}

/** Computes the failure counters like the statement: by runs of failures, each up to the next success. */
export function countFailures(world: World, settled: readonly Settled[]): string[] {
  const disabled: string[] = [];
  for (const [subscription, own] of Map.groupBy(settled, (one) => one.subscription)) {
    const runs = [0];
    for (const { row } of own)
      if (row.state === "delivered") runs.push(0);
      else runs.push((runs.pop() ?? 0) + 1);
    const [leading = 0, ...later] = runs;
    if (subscription.state !== "active") continue;
    const run = subscription.failures + leading;
    if (Math.max(run, ...later) >= DISABLE_AFTER_FAILURES) {
      subscription.failures = DISABLE_AFTER_FAILURES;
      subscription.state = "disabled";
      subscription.changedMs = world.nowMs;
      disabled.push(subscription.id);
    } else subscription.failures = later.at(-1) ?? run;
  }
  return disabled;
}

function describe(record: AttemptRecord): string {
  return `${record.subscriptionId}#${record.sequence}/${record.attempt} ${record.decision.kind}`;
}
