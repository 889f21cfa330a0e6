import type { StoreDeps } from "./dispatch-store.ts";
import type { Session } from "./network.ts";
import type { Redis } from "./redis.ts";
import { append } from "./log.ts";
import { countUnlogged } from "./numbers.ts";
import type { HistoryRow, OutboxRow, SubscriptionRow } from "./tables.ts";

/** The chance that a transaction fails after its statements. */
const ROLLBACK = 0.03;

export interface ApiDeps extends StoreDeps {
  readonly redis: Redis;
}

/** The transactions of the API that record events: overlapping, slow, rolled back, and each with its wake. */
export class Writers {
  readonly #deps: ApiDeps;
  #events = 0;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  nextEventId(): string {
    return `E${++this.#events}`;
  }

  /** Runs one transaction over the subscriptions of some partners; it fails if PostgreSQL does. */
  async write(partnerIds: readonly number[], count: number): Promise<void> {
    const { world, network, postgres, redis } = this.#deps;
    const recordedAtMs = world.wallMs;
    const session = network.session(postgres);
    // The change of the domain comes first, so transactions begin in another order than they end.
    await session.work(world.workload.latency(10, 2_000));
    const draw = () =>
      partnerIds.flatMap((partnerId) =>
        Array.from({ length: count }, () => this.#event(partnerId, recordedAtMs)),
      );
    const written = await recordEvents(this.#deps, session, { partnerIds, draw });
    redis.wake(written.map(({ id, shard }) => ({ subscriptionId: id, shard })));
  }

  #event(partnerId: number, recordedAtMs: number): HistoryRow {
    const { world, tables } = this.#deps;
    const { eventBytes } = world.settings;
    const inBatch = !world.workload.chance(0.15);
    return {
      id: tables.nextHistoryId(),
      eventId: this.nextEventId(),
      partnerId,
      bytes: eventBytes[this.#events % eventBytes.length] ?? 0,
      // Null for an event about a site, which has no review.
      reviewId: inBatch ? world.workload.int(1, world.settings.reviewsPerPartner) : null,
      inBatch,
      recordedAtMs,
    };
  }
}

/**
 * Simulates `recordActions`: writes events to the outbox of every subscription that wants them, or to its waiting
 * batch, and returns the subscriptions to wake. The events are drawn while the sequences are locked.
 */
export async function recordEvents(
  deps: StoreDeps,
  session: Session,
  {
    partnerIds,
    draw,
  }: { readonly partnerIds: readonly number[]; readonly draw: () => HistoryRow[] },
): Promise<readonly SubscriptionRow[]> {
  const { world } = deps;
  let written: readonly SubscriptionRow[] = [];
  await holdSequences(immediateOf(deps, partnerIds), async (targets) => {
    written = targets;
    await session.work(world.workload.latency(2, 10));
    const events = draw();
    const drawn = drawSequences(targets, events);
    await session.work(world.workload.latency(8, 1_500));
    if (world.workload.chance(ROLLBACK)) throw new Error("rolled back");
    for (const target of targets) {
      insertEntries(deps, target, eventsOf(target, events), drawn.baseOf(target));
      drawn.commit(target);
    }
    insertBatchEntries(deps, partnerIds, events);
  });
  return written;
}

function immediateOf({ tables }: StoreDeps, partnerIds: readonly number[]): SubscriptionRow[] {
  return partnerIds
    .flatMap((partnerId) => tables.slot(partnerId, "immediate") ?? [])
    .toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function eventsOf({ partnerId }: SubscriptionRow, events: readonly HistoryRow[]): HistoryRow[] {
  return events.filter((event) => event.partnerId === partnerId);
}

function insertEntries(
  { world, monitor }: StoreDeps,
  target: SubscriptionRow,
  events: readonly HistoryRow[],
  base: number,
): void {
  countUnlogged(target);
  const rows: OutboxRow[] = events.map((event, at) => ({
    sequence: base + at + 1,
    unlogged: target.unlogged,
    eventId: event.eventId,
    isTest: false,
    history: event,
    reviewId: event.reviewId,
    round: 1,
    attempt: 1,
    dueAtMs: null,
    recordedAtMs: event.recordedAtMs,
    visibleMs: world.nowMs,
  }));
  append(target, "logged", rows);
  monitor.recorded(target.id, rows);
  const [first, last] = [rows[0]?.sequence, rows.at(-1)?.sequence];
  world.trace("api", `commits ${target.id}#${first} to #${last}`);
}

function insertBatchEntries(
  { tables, monitor }: StoreDeps,
  partnerIds: readonly number[],
  events: readonly HistoryRow[],
): void {
  for (const partnerId of partnerIds) {
    const target = tables.slot(partnerId, "batch");
    if (target === undefined || !target.open) continue;
    for (const event of eventsOf(target, events)) {
      if (!event.inBatch) continue;
      target.batch.push(event);
      monitor.batched(target.id, event);
    }
  }
}

/** Locks the sequence rows one after the other, always in the same order, while `work` runs. */
export function holdSequences(
  targets: readonly SubscriptionRow[],
  work: (open: readonly SubscriptionRow[]) => Promise<void>,
): Promise<void> {
  const hold = (left: readonly SubscriptionRow[]): Promise<void> => {
    const [first, ...others] = left;
    if (first === undefined) return work(targets.filter((one) => one.open));
    return first.sequenceLock.hold(() => hold(others));
  };
  return hold(targets);
}

interface DrawnSequences {
  /** Returns the last sequence before the drawn ones. */
  baseOf(target: SubscriptionRow): number;
  commit(target: SubscriptionRow): void;
}

/** Draws a sequence for each event of a target. A transaction that is rolled back commits none of them. */
export function drawSequences(
  targets: readonly SubscriptionRow[],
  events: readonly HistoryRow[],
): DrawnSequences {
  const bases = new Map(targets.map((one) => [one, one.lastSequence]));
  return {
    baseOf: (target) => bases.get(target) ?? 0,
    commit(target) {
      target.lastSequence += eventsOf(target, events).length;
    },
  };
}
