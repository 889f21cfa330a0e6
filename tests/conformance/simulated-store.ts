import { CHUNK } from "../../db/log.ts";
import { WINDOW } from "../../dispatcher/store/loaded-entries.ts";
import type { Leases } from "../../dispatcher/shards/lease-queries.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import { SHARDS, type Wake } from "../../src/outbox/schedule.ts";
import { Changes } from "../simulation/changes.ts";
import { createStore } from "../simulation/dispatch-store.ts";
import { createLeases } from "../simulation/leases.ts";
import { queueOf } from "../simulation/log.ts";
import { Monitor } from "../simulation/monitor.ts";
import { numberOf } from "../simulation/numbers.ts";
import { Network, Server } from "../simulation/network.ts";
import { Prng } from "../simulation/prng.ts";
import { Process } from "../simulation/process.ts";
import { Redis } from "../simulation/redis.ts";
import { LIMITS } from "../../dispatcher/delivery/limits.ts";
import { NO_FAULTS, type Settings } from "../simulation/settings.ts";
import {
  newSubscription,
  Tables,
  type OutboxRow,
  type SubscriptionRow,
} from "../simulation/tables.ts";
import { EPOCH_MS, World } from "../simulation/world.ts";
import { recordEvents, Writers, type ApiDeps } from "../simulation/writers.ts";
import { bySequence, inOrder, type SubscriptionState, type TablesState } from "./tables.ts";
import {
  BATCH_HOUR_MS,
  Names,
  PARTNERS,
  REVIEWS,
  type NewEvent,
  type NewSubscription,
  type TestedStore,
} from "./tested-store.ts";

/** A random generator that makes every call immediate and faultless. */
class Still extends Prng {
  override latency(): number {
    return 0;
  }

  override chance(): boolean {
    return false;
  }

  override fork(): Prng {
    return this;
  }
}

const SETTINGS: Settings = {
  processes: 1,
  retryDelaysMs: [],
  activeMs: 0,
  hourMs: BATCH_HOUR_MS,
  partners: PARTNERS.length,
  reviewsPerPartner: REVIEWS,
  writeEveryMs: 0,
  eventsPerWrite: 0,
  changeEveryMs: 0,
  eraseEveryMs: 0,
  chunk: CHUNK,
  window: WINDOW,
  rowMs: 0,
  eventBytes: [],
  badReceivers: 0,
  faults: NO_FAULTS,
  limits: LIMITS,
};

/** The simulated store of the dispatcher, without the rest of the simulation. */
export class SimulatedStore implements TestedStore {
  readonly store: DispatchStore;
  readonly leases: Leases;
  readonly subscriptions = new Names<string>();
  readonly events = new Names<string>();
  readonly reviews = new Names<number>();
  readonly startMs = EPOCH_MS;
  readonly #deps: ApiDeps;
  readonly #process: Process;
  readonly #changes: Changes;

  constructor() {
    const world = new World({ settings: SETTINGS, random: new Still(1), traced: false });
    world.faulty = false;
    const tables = new Tables();
    this.#deps = {
      world,
      tables,
      network: new Network(world),
      postgres: new Server("postgres", { typicalMs: 0, worstMs: 0, inOrder: false }),
      // The violations of the monitor are not read: its invariants are about dispatchers, and there are none.
      monitor: new Monitor(world, tables),
      redis: new Redis(world),
    };
    this.#changes = new Changes(this.#deps, new Writers(this.#deps));
    this.#process = new Process(world, "D", 0);
    this.store = createStore(this.#deps, this.#process);
    this.leases = createLeases(this.#deps, this.#process);
    for (const partner of PARTNERS)
      for (let review = 0; review < REVIEWS; review++)
        this.reviews.set(`p${partner} r${review}`, reviewId(partner, review));
  }

  get clock(): Clock {
    return this.#process.clock;
  }

  now(): Date {
    return new Date(this.#deps.world.wallMs);
  }

  monotonicMs(): number {
    return this.#process.clock.monotonicMs();
  }

  shardOf(name: string): number {
    return this.#row(name).shard;
  }

  async pass(ms: number): Promise<void> {
    const { loop } = this.#deps.world;
    loop.after(ms, () => {});
    loop.runWhile(() => true);
  }

  /** Runs the due timers of the virtual clock until the work is done. */
  async settle<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    void Promise.allSettled([work]).then(() => (isDone = true));
    this.#deps.world.loop.runWhile(() => !isDone);
    return work;
  }

  async create({ name, partner, failures, ...fields }: NewSubscription): Promise<void> {
    const { world, tables } = this.#deps;
    const isBatch = fields.kind === "batch";
    const row = newSubscription({
      ...fields,
      id: name,
      partnerId: partner,
      host: "receiver.example",
      createdAtMs: world.wallMs,
      nextBatchAtMs: isBatch ? world.wallMs + fields.intervalHours * BATCH_HOUR_MS : null,
    });
    row.failures = failures;
    tables.subscriptions.set(name, row);
    this.subscriptions.set(name, name);
  }

  async append(events: readonly NewEvent[]): Promise<readonly Wake[]> {
    const { world, tables, network, postgres } = this.#deps;
    for (const { name } of events) this.events.set(name, name);
    const partnerIds = [...new Set(events.map(({ partner }) => partner))];
    const draw = () => events.map((event) => historyRow(tables, event, world.wallMs));
    const session = network.session(postgres);
    const written = await this.settle(recordEvents(this.#deps, session, { partnerIds, draw }));
    return written.map(({ id, shard }) => ({ subscriptionId: id, shard }));
  }

  sendTest(name: string, event: string): Promise<boolean> {
    this.events.set(event, event);
    return this.#queues(name, this.#changes.sendTest(this.#row(name), event));
  }

  redeliver(name: string, event: string): Promise<boolean> {
    const lastRound = (rows: readonly OutboxRow[]) =>
      rows.filter((row) => row.eventId === event).toSorted((a, b) => b.round - a.round)[0];
    return this.settle(this.#changes.redeliver(this.#row(name), lastRound));
  }

  enable(name: string, held: "deliver" | "skip"): Promise<void> {
    return this.settle(this.#changes.enable(this.#row(name), held === "deliver"));
  }

  remove(name: string): Promise<void> {
    return this.settle(this.#changes.remove(this.#row(name)));
  }

  async reorder(name: string, ordering: "subscription" | "review"): Promise<void> {
    const row = this.#row(name);
    if (row.ordering !== ordering) await this.settle(this.#changes.reorder(row));
  }

  async renumber(name: string, sequenceHeaders: boolean): Promise<void> {
    const row = this.#row(name);
    if (row.sequenceHeaders !== sequenceHeaders) await this.settle(this.#changes.renumber(row));
  }

  async tables(): Promise<TablesState> {
    return stateOf(this.#deps.tables, this.reviews);
  }

  #row(name: string): SubscriptionRow {
    return this.#deps.tables.subscription(this.subscriptions.idOf(name));
  }

  /** Returns whether the work assigned a sequence. */
  async #queues(name: string, work: Promise<void>): Promise<boolean> {
    const before = this.#row(name).lastSequence;
    await this.settle(work);
    return this.#row(name).lastSequence > before;
  }
}

function reviewId(partner: number, review: number): number {
  return partner * REVIEWS + review + 1;
}

function historyRow(tables: Tables, { name, partner, review }: NewEvent, recordedAtMs: number) {
  return {
    id: tables.nextHistoryId(),
    eventId: name,
    partnerId: partner,
    reviewId: review === null ? null : reviewId(partner, review),
    inBatch: review !== null,
    bytes: 0,
    recordedAtMs,
  };
}

function stateOf(tables: Tables, reviews: Names<number>): TablesState {
  return {
    subscriptions: inOrder(
      Array.from(tables.subscriptions.values(), (row) => subscriptionState(row, reviews)),
      ({ name }) => name,
    ),
    dispatchers: [...tables.dispatchers.keys()].toSorted(),
    shards: Array.from({ length: SHARDS }, (_, shard) => ({
      shard,
      owner: tables.owners[shard] ?? null,
      epoch: tables.epochs[shard] ?? 0,
      unclean: tables.unclean[shard] ?? false,
    })).filter(({ epoch }) => epoch > 0),
  };
}

function subscriptionState(row: SubscriptionRow, reviews: Names<number>): SubscriptionState {
  const since = (ms: number | null) => (ms === null ? null : ms - EPOCH_MS);
  return {
    name: row.id,
    state: row.state,
    failures: row.failures,
    ordering: row.ordering,
    sequenceHeaders: row.sequenceHeaders,
    nextBatchAtMs: since(row.nextBatchAtMs),
    lastBatchAtMs: since(row.lastBatchAtMs),
    lastSequence: row.open ? row.lastSequence : null,
    settledThrough: row.settledThrough,
    skippedThrough: row.skippedThrough,
    numbers: row.log.map((event) => ({
      event: event.eventId,
      number: numberOf(row, event) ?? 0,
    })),
    queued: Array.from(queueOf(row), (entry) => ({
      sequence: entry.sequence,
      isLogged: !row.outbox.includes(entry),
      event: entry.eventId,
      isTest: entry.isTest,
      round: entry.round,
      attempt: entry.attempt,
      review: entry.reviewId === null ? null : reviews.nameOf(entry.reviewId),
      dueAtMs: since(entry.dueAtMs),
      recordedAtMs: entry.recordedAtMs - EPOCH_MS,
    })),
    ended: inOrder(
      Array.from(
        row.settled.values(),
        ({ sequence, eventId, round, state, reason, settledMs }) => ({
          sequence,
          event: eventId,
          round,
          state,
          reason,
          skippedAtMs: state === "skipped" ? Math.trunc(settledMs) : null,
        }),
      ),
      bySequence,
    ),
    attempts: inOrder(
      Array.from(row.attempts.values(), ({ sequence, round, attempt, outcome, ...planned }) => ({
        sequence,
        round,
        attempt,
        outcome,
        nextAttemptAtMs: since(planned.nextAttemptAtMs),
      })),
      bySequence,
    ),
    waiting: row.batch.map(({ eventId }) => eventId),
  };
}
