import type { Decision } from "../../dispatcher/actor/decide.ts";
import type { Loaded } from "../../dispatcher/actor/event.ts";
import type { Claim, Leases } from "../../dispatcher/shards/lease-queries.ts";
import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import { Loader } from "../../dispatcher/store/loader.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { TEST_EVENT } from "../../src/outbox/event.ts";
import type { Wake } from "../../src/outbox/schedule.ts";
import { silentLog } from "../support/dispatch.ts";
import { attemptRecord } from "../support/outbox.ts";
import { inOrder, type TablesState } from "./tables.ts";

/** The length of an hour of a batch interval, in both stores. */
export const BATCH_HOUR_MS = 1_000;

export type Partner = 0 | 1;
export const PARTNERS: readonly Partner[] = [0, 1];
/** The number of reviews of each partner. */
export const REVIEWS = 3;

export interface NewSubscription {
  readonly name: string;
  readonly partner: Partner;
  readonly kind: "immediate" | "batch";
  readonly ordering: "subscription" | "review";
  readonly sequenceHeaders: boolean;
  readonly shard: number;
  /** The number of permanent failures in a row at the start. */
  readonly failures: number;
  /** The interval of a batch subscription. */
  readonly intervalHours: number;
}

export interface NewEvent {
  readonly name: string;
  readonly partner: Partner;
  /** The index of the review, from 0; null for an event about a site, which no batch has. */
  readonly review: number | null;
}

/** The result of one POST. */
export interface Outcome {
  /** The id of the attempt, the same in both stores. */
  readonly id: string;
  readonly subscription: string;
  readonly event: string;
  readonly isTest: boolean;
  /** The entry was read from the log. */
  readonly isLogged: boolean;
  /** The time at which the entry was recorded. */
  readonly recordedAtMs: number;
  readonly sequence: number;
  readonly round: number;
  readonly attempt: number;
  readonly kind: Decision["kind"];
  /** The delay of a retry. */
  readonly delayMs: number;
}

export interface Load {
  readonly subscription: string;
  readonly after: number;
  readonly limit: number;
  readonly exceptReviews: readonly (string | null)[];
}

/** Names for the ids of one store. */
export class Names<Id extends string | number> {
  readonly #ids = new Map<string, Id>();
  readonly #names = new Map<Id, string>();

  set(name: string, id: Id): void {
    this.#ids.set(name, id);
    this.#names.set(id, name);
  }

  idOf(name: string): Id {
    const id = this.#ids.get(name);
    if (id === undefined) throw new Error(`Nothing is called ${name}.`);
    return id;
  }

  nameOf(id: Id): string {
    const name = this.#names.get(id);
    if (name === undefined) throw new Error(`${id} has no name.`);
    return name;
  }

  has(id: Id): boolean {
    return this.#names.has(id);
  }
}

/**
 * One of the two stores, with everything that the dispatcher and the API do to it. The names of dispatchers are their
 * ids.
 */
export interface TestedStore {
  readonly store: DispatchStore;
  readonly leases: Leases;
  readonly subscriptions: Names<string>;
  readonly events: Names<string>;
  readonly reviews: Names<number>;
  readonly clock: Clock;
  shardOf(subscription: string): number;
  now(): Date;
  monotonicMs(): number;
  /** The start of the test. */
  readonly startMs: number;
  /** Moves the clock of the processes and that of PostgreSQL. */
  pass(ms: number): Promise<void>;
  /** Waits for work that a store has begun. */
  settle<T>(work: Promise<T>): Promise<T>;

  create(subscription: NewSubscription): Promise<void>;
  /** Records events in one transaction and returns the subscriptions to wake. */
  append(events: readonly NewEvent[]): Promise<readonly Wake[]>;
  /** Returns false if the test is rejected, for example for a disabled subscription. */
  sendTest(subscription: string, event: string): Promise<boolean>;
  redeliver(subscription: string, event: string): Promise<boolean>;
  enable(subscription: string, held: "deliver" | "skip"): Promise<void>;
  remove(subscription: string): Promise<void>;
  reorder(subscription: string, ordering: "subscription" | "review"): Promise<void>;
  renumber(subscription: string, sequenceHeaders: boolean): Promise<void>;

  tables(): Promise<TablesState>;
}

/** The request columns in the record of a test, which has no history. */
const KEPT_REQUEST = {
  payloadFormat: null,
  host: null,
  signature: null,
  bodyDigest: null,
  requestHeaders: {},
  requestBody: "{}",
};

/** A store with names in place of ids, so that the results of both stores can be compared. */
export class NamedStore {
  readonly on: TestedStore;
  readonly #loader: Loader;

  constructor(on: TestedStore) {
    this.on = on;
    this.#loader = new Loader({ store: on.store, clock: on.clock, log: silentLog });
  }

  async append(events: readonly NewEvent[]) {
    const wakes = await this.on.append(events);
    const woken = wakes.map(({ subscriptionId }) => this.on.subscriptions.nameOf(subscriptionId));
    return woken.toSorted();
  }

  async load(load: Load) {
    const { events } = this.on;
    const { found } = await this.on.settle(this.#loaded(load));
    if (found === undefined) return undefined;
    const entry = ({
      sequence,
      eventId,
      round,
      attempt,
      dueAt,
      isTest,
      isLogged,
      number,
      settledBefore,
    }: (typeof found.entries)[0]) => ({
      sequence,
      event: events.nameOf(eventId),
      round,
      attempt,
      isTest,
      isLogged,
      dueAtMs: this.#ms(dueAt),
      number,
      settledBefore,
    });
    return {
      ordering: found.subscription.ordering,
      settledLimit: found.subscription.settledLimit,
      nextBatchAtMs: this.#ms(found.subscription.nextBatchAt),
      entries: found.entries.map(entry),
      tests: found.tests.map(entry),
      lastSequence: found.lastSequence,
    };
  }

  #loaded({ subscription, after, limit, exceptReviews }: Load): Promise<Loaded> {
    const { subscriptions, reviews } = this.on;
    const request = {
      id: subscriptions.idOf(subscription),
      shard: this.on.shardOf(subscription),
      generation: 1,
      after,
      limit,
      maxBytes: 1_000_000,
      exceptReviews: exceptReviews.map((name) => (name === null ? null : reviews.idOf(name))),
    };
    return new Promise((resolve) => this.#loader.load(request, resolve));
  }

  async commit(dispatcher: string, outcomes: readonly Outcome[]) {
    const records = outcomes.map((one) => this.#recordOf(one));
    const result = await this.on.settle(this.on.store.commit(dispatcher, records));
    const named = (ids: readonly string[]) =>
      [...new Set(ids.map((id) => this.on.subscriptions.nameOf(id)))].toSorted();
    return {
      fenced: result.fenced,
      // The list of a fenced commit is not used.
      inactive: result.fenced ? [] : named(result.inactive),
      disabled: named(result.disabled),
    };
  }

  #recordOf(outcome: Outcome): AttemptRecord {
    const { subscription, event, isTest, kind, delayMs, recordedAtMs, ...numbers } = outcome;
    const now = this.on.now();
    const isAnswered = kind !== "interrupted";
    return attemptRecord({
      ...numbers,
      shard: this.on.shardOf(subscription),
      subscriptionId: this.on.subscriptions.idOf(subscription),
      eventId: this.on.events.idOf(event),
      recordedAt: new Date(this.on.startMs + recordedAtMs),
      startedAt: now,
      statusCode: isAnswered ? 200 : null,
      errorCode: null,
      ...(isTest && { event: TEST_EVENT, ...KEPT_REQUEST }),
      ...(isAnswered && { responseHeaders: {}, responseExcerpt: "" }),
      endedMs: this.on.monotonicMs(),
      decision: kind === "retry" ? { kind, delayMs } : { kind },
    });
  }

  dispatchBatch(dispatcher: string, subscription: string, id: string) {
    const now = this.on.now();
    const subscriptionId = this.on.subscriptions.idOf(subscription);
    const batch = { id, dispatcherId: dispatcher, subscriptionId, now };
    return this.on.settle(this.on.store.dispatchBatch(batch));
  }

  async sweep(shards: readonly number[], limit?: number) {
    const found = await this.on.settle(this.on.store.sweep(shards, limit));
    const swept = found
      .filter(({ subscriptionId }) => this.on.subscriptions.has(subscriptionId))
      .map(({ subscriptionId, shard, dueInMs, waitedMs }) => ({
        subscription: this.on.subscriptions.nameOf(subscriptionId),
        shard,
        dueInMs,
        waitedMs,
      }));
    return inOrder(swept, ({ subscription, waitedMs }) => `${subscription} ${waitedMs}`);
  }

  async renew(dispatcher: string) {
    const renewed = await this.on.settle(this.on.leases.renew(dispatcher));
    return renewed === undefined ? null : { ...renewed, now: this.#ms(renewed.now) };
  }

  async assign(dispatcher: string) {
    const { owned, surplus } = await this.on.settle(this.on.leases.assign(dispatcher));
    return { owned: new Map([...owned].toSorted(([a], [b]) => a - b)), surplus };
  }

  async heartbeats() {
    const rows = await this.on.settle(this.on.leases.heartbeats());
    const named = rows.map(({ id, renewedAt }) => ({ id, renewedMs: this.#ms(renewedAt) ?? 0 }));
    return inOrder(named, ({ id }) => id);
  }

  expire({ id, renewedMs }: { readonly id: string; readonly renewedMs: number }) {
    const renewedAt = new Date(this.on.startMs + renewedMs);
    return this.on.settle(this.on.leases.expire({ id, renewedAt }));
  }

  release(dispatcher: string, claims: ReadonlyMap<number, Claim>) {
    return this.on.settle(this.on.leases.release(dispatcher, claims));
  }

  leave(dispatcher: string, claims: ReadonlyMap<number, Claim>) {
    return this.on.settle(this.on.leases.leave(dispatcher, claims));
  }

  #ms(at: Date | null): number | null {
    return at === null ? null : at.getTime() - this.on.startMs;
  }
}
