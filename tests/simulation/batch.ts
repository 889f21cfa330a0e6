import { nextBatchAt } from "../../dispatcher/actor/decide.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { Monitor } from "./monitor.ts";
import type { Session } from "./network.ts";
import { append } from "./log.ts";
import type { HistoryRow, OutboxRow, SubscriptionRow, Tables, WindowRow } from "./tables.ts";
import { EPOCH_MS, type World } from "./world.ts";

interface BatchDeps {
  readonly world: World;
  readonly tables: Tables;
  readonly monitor: Monitor;
}

type Batch = Parameters<DispatchStore["dispatchBatch"]>[0];
type BatchResult = Awaited<ReturnType<DispatchStore["dispatchBatch"]>>;
type Step = BatchResult & { readonly more: boolean };

const NOTHING: Step = { fenced: false, jobs: 0, more: false };

/** Simulates `dispatchBatch`, with a transaction per chunk. */
export async function dispatchBatch(
  deps: BatchDeps,
  batch: Batch,
  session: Session,
): Promise<BatchResult> {
  for (let jobs = 0; ;) {
    const step = await dispatchChunk(deps, batch, session);
    jobs += step.jobs;
    if (!step.more) return { fenced: step.fenced, jobs };
    await session.pass(deps.world.random.latency(1, 20));
  }
}

/** Dispatches a chunk statement by statement. It locks its lease and the sequence until its commit. */
async function dispatchChunk(deps: BatchDeps, batch: Batch, session: Session): Promise<Step> {
  const { tables, world } = deps;
  const lease = tables.dispatchers.get(batch.dispatcherId);
  if (lease === undefined) return { ...NOTHING, fenced: true };
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
): Promise<Step> {
  const { random } = world;
  await session.pass(random.latency(1, 20));
  if (!subscription.open || subscription.state !== "active") return NOTHING;
  const window = windowOf(subscription, batch);
  if (window === undefined) return NOTHING;
  await session.pass(random.latency(1, 20));
  const readMs = world.nowMs;
  const taken = chunkOf(subscription, window, world.settings.chunk);
  await session.pass(random.latency(2, 80));
  await session.pass(random.latency(1, 20));
  // The real statement locks the subscription, and a disabling waits for it. Here the disabling comes first.
  if (!subscription.open || subscription.state !== "active") return NOTHING;
  const entries = toEntries(world, subscription, taken);
  const gone = new Set(taken);
  subscription.batch = subscription.batch.filter((event) => !gone.has(event));
  append(subscription, "row", entries);
  subscription.lastSequence += entries.length;
  world.trace(batch.dispatcherId, `dispatches ${entries.length} events of ${subscription.id}`);
  monitor.dispatched(subscription, entries, { windowId: window.id, readMs });
  const begun = new Set(taken.map((event) => event.reviewId));
  begun.delete(window.reviewId);
  const more = taken.length === world.settings.chunk;
  if (more) subscription.window = { ...window, reviewId: taken.at(-1)?.reviewId ?? null };
  else closeWindow(world, subscription, { window, now: batch.now });
  return { fenced: false, jobs: begun.size, more };
}

/** Returns the open window, or a new one if the batch is due. */
function windowOf(subscription: SubscriptionRow, { id, now }: Batch): WindowRow | undefined {
  const { nextBatchAtMs, window } = subscription;
  if (nextBatchAtMs === null) return undefined;
  if (window !== undefined || nextBatchAtMs > now.getTime()) return window;
  let through = 0;
  for (const event of visibleEvents(subscription)) through = Math.max(through, event.id);
  return { id, openedAtMs: now.getTime(), through, reviewId: null };
}

/** Returns the events of a window: all that wait, whenever they were recorded. */
export function visibleEvents({ batch }: SubscriptionRow): readonly HistoryRow[] {
  return batch;
}

function closeWindow(
  { settings }: World,
  subscription: SubscriptionRow,
  { window, now }: { readonly window: WindowRow; readonly now: Date },
): void {
  const dueAt = new Date(subscription.nextBatchAtMs ?? EPOCH_MS);
  const next =
    dueAt > now ? dueAt : nextBatchAt(dueAt, subscription.intervalHours * settings.hourMs, now);
  subscription.window = undefined;
  subscription.lastBatchAtMs = window.openedAtMs;
  subscription.nextBatchAtMs = next.getTime();
}

/**
 * Returns the next events of a window: review by review, in the order of the first event of each. The review in which
 * the last chunk ended comes first.
 */
export function chunkOf(
  subscription: SubscriptionRow,
  { through, reviewId: begun }: WindowRow,
  limit: number,
): HistoryRow[] {
  const left = visibleEvents(subscription).filter((event) => event.id <= through);
  const firstOf = new Map<number | null, number>();
  for (const { reviewId, id } of left)
    firstOf.set(reviewId, Math.min(id, firstOf.get(reviewId) ?? id));
  if (firstOf.has(begun)) firstOf.set(begun, 0);
  const taken: HistoryRow[] = [];
  for (const [review] of [...firstOf].toSorted(([, a], [, b]) => a - b)) {
    if (taken.length >= limit) break;
    const own = left.filter(({ reviewId }) => reviewId === review);
    taken.push(...own.toSorted((a, b) => a.id - b.id));
  }
  return taken.slice(0, limit);
}

function toEntries(
  world: World,
  subscription: SubscriptionRow,
  taken: readonly HistoryRow[],
): OutboxRow[] {
  return taken.map((event, at) => ({
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
