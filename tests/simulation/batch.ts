import type { BatchResult } from "../../dispatcher/store/batch.ts";
import { nextBatchAt } from "../../dispatcher/actor/decide.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { Monitor } from "./monitor.ts";
import type { Session } from "./network.ts";
import type { HistoryRow, OutboxRow, SubscriptionRow, Tables } from "./tables.ts";
import type { World } from "./world.ts";

interface BatchDeps {
  readonly world: World;
  readonly tables: Tables;
  readonly monitor: Monitor;
}

type Batch = Parameters<DispatchStore["dispatchBatch"]>[0];

const NOTHING: BatchResult = { fenced: false, jobs: 0 };

/** `dispatchBatch`, statement by statement: it holds its lease and the sequence until its commit. */
export async function dispatchBatch(
  deps: BatchDeps,
  batch: Batch,
  session: Session,
): Promise<BatchResult> {
  const { tables, world } = deps;
  const lease = tables.dispatchers.get(batch.dispatcherId);
  if (lease === undefined) return { fenced: true, jobs: 0 };
  lease.holders += 1;
  try {
    await session.pass(world.random.latency(1, 20));
    const subscription = tables.subscription(batch.subscriptionId);
    return await subscription.sequenceLock.hold(() => dispatch(deps, subscription, batch, session));
  } finally {
    lease.holders -= 1;
  }
}

async function dispatch(
  { world, monitor }: BatchDeps,
  subscription: SubscriptionRow,
  batch: Batch,
  session: Session,
): Promise<BatchResult> {
  const { random, settings } = world;
  await session.pass(random.latency(1, 20));
  const nowMs = batch.now.getTime();
  const dueAtMs = subscription.nextBatchAtMs;
  const isDue = subscription.state === "active" && dueAtMs !== null && dueAtMs <= nowMs;
  if (!subscription.open || !isDue) return NOTHING;
  await session.pass(random.latency(1, 20));
  const taken = visibleEvents(subscription);
  await session.pass(random.latency(2, 80));
  await session.pass(random.latency(1, 20));
  // The real statement holds the row of the subscription, and a disabling waits for it. Here the disabling wins.
  if (subscription.state !== "active") return NOTHING;
  const entries = toEntries(world, subscription, taken);
  subscription.batch = subscription.batch.filter((event) => !taken.includes(event));
  subscription.outbox.push(...entries);
  subscription.lastSequence += entries.length;
  const intervalMs = subscription.intervalHours * settings.hourMs;
  const next = nextBatchAt(new Date(dueAtMs), intervalMs, batch.now);
  subscription.lastBatchAtMs = nowMs;
  subscription.nextBatchAtMs = next.getTime();
  world.trace(batch.dispatcherId, `dispatches ${entries.length} events of ${subscription.id}`);
  monitor.dispatched(subscription, entries);
  return { fenced: false, jobs: new Set(taken.map((event) => event.reviewId)).size };
}

/** The events that a dispatch takes: all that wait, whenever they were recorded. */
export function visibleEvents({ batch }: SubscriptionRow): HistoryRow[] {
  return [...batch];
}

/** The entries of a batch: review by review, in the order of the first event of each. */
function toEntries(
  world: World,
  subscription: SubscriptionRow,
  taken: readonly HistoryRow[],
): OutboxRow[] {
  const firstOf = new Map<number | null, number>();
  for (const { reviewId, id } of taken)
    firstOf.set(reviewId, Math.min(id, firstOf.get(reviewId) ?? id));
  const first = (event: HistoryRow) => firstOf.get(event.reviewId) ?? 0;
  return taken
    .toSorted((a, b) => first(a) - first(b) || a.id - b.id)
    .map((event, at) => ({
      sequence: subscription.lastSequence + at + 1,
      eventId: event.eventId,
      isTest: false,
      history: event,
      reviewId: event.reviewId,
      round: 1,
      attempt: 1,
      dueAtMs: null,
      recordedAtMs: world.wallMs,
      visibleMs: world.nowMs,
    }));
}
