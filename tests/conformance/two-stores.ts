import { expect } from "bun:test";

import type { Claim } from "../../dispatcher/shards/lease-queries.ts";
import type { Postgres } from "./postgres-store.ts";
import { SimulatedStore } from "./simulated-store.ts";
import type { SubscriptionState, TablesState } from "./tables.ts";
import {
  NamedStore,
  type Load,
  type NewEvent,
  type NewSubscription,
  type Outcome,
} from "./tested-store.ts";

export const ONE: NewSubscription = {
  name: "one",
  partner: 0,
  kind: "immediate",
  ordering: "subscription",
  sequenceHeaders: false,
  shard: 7,
  failures: 0,
  intervalHours: 1,
};

/** Both stores. Every call goes to both, and their results and tables have to be equal. */
export class TwoStores {
  readonly #real: NamedStore;
  readonly #simulated = new NamedStore(new SimulatedStore());
  #tables: TablesState = { subscriptions: [], dispatchers: [], shards: [] };
  #named = 0;
  #calls = 0;

  constructor(real: NamedStore) {
    this.#real = real;
  }

  static async on(postgres: Postgres): Promise<TwoStores> {
    return new TwoStores(new NamedStore(await postgres.empty()));
  }

  /** Returns two stores with the lease of `dispatcher` and the subscription `one`, which is immediate by default. */
  static async withOne(
    postgres: Postgres,
    fields: Partial<NewSubscription> = {},
  ): Promise<TwoStores> {
    const stores = await TwoStores.on(postgres);
    await stores.create({ ...ONE, ...fields });
    await stores.join("dispatcher");
    return stores;
  }

  /** The number of calls that both stores have answered. */
  get calls(): number {
    return this.#calls;
  }

  /** The tables at the last comparison. */
  get tables(): TablesState {
    return this.#tables;
  }

  subscription(name: string): SubscriptionState {
    const found = this.#tables.subscriptions.find((one) => one.name === name);
    if (found === undefined) throw new Error(`There is no subscription ${name}.`);
    return found;
  }

  /** Returns an unused name with the length of a ULID, which ids of attempts and batches must have. */
  newName(kind: string): string {
    return kind + String(++this.#named).padStart(26 - kind.length, "0");
  }

  create(subscription: NewSubscription) {
    return this.#both(({ on }) => on.create(subscription));
  }

  append(events: readonly NewEvent[]) {
    return this.#both((store) => store.append(events));
  }

  /** Records the events E1, E2, ... of these reviews of the first partner. */
  appendReviews(reviews: readonly (number | null)[]) {
    return this.append(
      reviews.map((review, at) => ({ name: `E${at + 1}`, partner: 0, review }) as const),
    );
  }

  /** Makes the result of a POST of a queued entry of the subscription `one`. */
  outcome(sequence: number, kind: Outcome["kind"], delayMs = 0): Outcome {
    const entry = this.subscription("one").queued.find((one) => one.sequence === sequence);
    if (entry === undefined) throw new Error(`There is no entry ${sequence}.`);
    const { review: _review, dueAtMs: _dueAtMs, ...numbers } = entry;
    return { ...numbers, id: this.newName("ATTEMPT"), subscription: "one", kind, delayMs };
  }

  /** Sends the tests T1, T2, ... of the subscription `one`. */
  async sendTests(count: number): Promise<void> {
    for (let n = 1; n <= count; n++) await this.sendTest("one", `T${n}`);
  }

  sendTest(name: string, event: string) {
    return this.#both(({ on }) => on.sendTest(name, event));
  }

  redeliver(name: string, event: string) {
    return this.#both(({ on }) => on.redeliver(name, event));
  }

  enable(name: string, held: "deliver" | "skip") {
    return this.#both(({ on }) => on.enable(name, held));
  }

  remove(name: string) {
    return this.#both(({ on }) => on.remove(name));
  }

  reorder(name: string, ordering: "subscription" | "review") {
    return this.#both(({ on }) => on.reorder(name, ordering));
  }

  renumber(name: string, sequenceHeaders: boolean) {
    return this.#both(({ on }) => on.renumber(name, sequenceHeaders));
  }

  load(load: Load) {
    return this.#both((store) => store.load(load));
  }

  sweep(shards: readonly number[], limit?: number) {
    return this.#both((store) => store.sweep(shards, limit));
  }

  commit(dispatcher: string, outcomes: readonly Outcome[]) {
    return this.#both((store) => store.commit(dispatcher, outcomes));
  }

  dispatchBatch(dispatcher: string, name: string) {
    const id = this.newName("BATCH");
    return this.#both((store) => store.dispatchBatch(dispatcher, name, id));
  }

  join(dispatcher: string) {
    return this.#both(({ on }) => on.settle(on.leases.join(dispatcher)));
  }

  leave(dispatcher: string, claims: ReadonlyMap<number, Claim> = new Map()) {
    return this.#both((store) => store.leave(dispatcher, claims));
  }

  /** Returns the time of PostgreSQL since the start; null for an expired lease. */
  renew(dispatcher: string) {
    return this.#both((store) => store.renew(dispatcher));
  }

  assign(dispatcher: string) {
    return this.#both((store) => store.assign(dispatcher));
  }

  heartbeats() {
    return this.#both((store) => store.heartbeats());
  }

  expire(dead: { readonly id: string; readonly renewedMs: number }) {
    return this.#both((store) => store.expire(dead));
  }

  release(dispatcher: string, claims: ReadonlyMap<number, Claim>) {
    return this.#both((store) => store.release(dispatcher, claims));
  }

  pass(ms: number) {
    return this.#both(({ on }) => on.pass(ms));
  }

  /** Calls both stores and compares first their results and then their tables. */
  async #both<Answer>(ask: (store: NamedStore) => Promise<Answer>): Promise<Answer> {
    this.#calls += 1;
    const real = await ask(this.#real);
    const simulated = await ask(this.#simulated);
    expect(simulated, "the answer of the simulated store").toEqual(real as never);
    this.#tables = await this.#real.on.tables();
    expect(await this.#simulated.on.tables(), "the tables of the simulated store").toEqual(
      this.#tables,
    );
    return real;
  }
}
