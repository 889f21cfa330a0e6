import { expect, test } from "bun:test";

import type { Deliver } from "../../../dispatcher/delivery/deliver.ts";
import { Dispatcher } from "../../../dispatcher/dispatcher.ts";
import type { DispatchStore } from "../../../dispatcher/store/store.ts";
import { SHARDS } from "../../../src/outbox/schedule.ts";
import { createStore } from "../../simulation/dispatch-store.ts";
import { createLeases } from "../../simulation/leases.ts";
import { Monitor } from "../../simulation/monitor.ts";
import { Network, Server } from "../../simulation/network.ts";
import { Prng } from "../../simulation/prng.ts";
import { Process } from "../../simulation/process.ts";
import { Redis } from "../../simulation/redis.ts";
import { drawSettings, NO_FAULTS } from "../../simulation/settings.ts";
import { newSubscription, Tables } from "../../simulation/tables.ts";
import { EPOCH_MS, World } from "../../simulation/world.ts";

test("a backlog with slow receivers fills the slots, and drains once the receivers are fast", () => {
  const { pass, seen, dispatcher } = start();
  pass(20_000);
  const slow = pass(9_000);
  // The slow slots are in use for three rounds of requests.
  expect(slow).toBeGreaterThanOrEqual(2.5 * LIMITS.requests);
  seen.answerMs = FAST_MS;
  pass(5_000);
  const fast = pass(1_000);
  expect(fast).toBeGreaterThan(150);
  expect(seen.actors).toBeLessThanOrEqual(LIMITS.actors);
  expect(seen.entries).toBeLessThanOrEqual(8);
  expect(dispatcher.workload.waiting).toBeGreaterThan(0);
  // Every subscription is delivered.
  pass(45_000);
  expect(seen.posts).toBe(SUBSCRIPTIONS * ENTRIES);
});

const SUBSCRIPTIONS = 600;

const ENTRIES = 10;

const LIMITS = {
  requests: 16,
  requestsPerHost: 4,
  waitingPerHost: 4,
  waitingSlow: 16,
  actors: 64,
  entries: 256,
  bytes: 2 ** 30,
};

/** The time of one load. All loads together take longer than settings stay fresh. */
const LOAD_MS = 6;

const SLOW_MS = 3_000;

const FAST_MS = 20;

const HISTORY = { id: 1, reviewId: 1, inBatch: true, recordedAtMs: EPOCH_MS };

/** Makes a backlog of many subscriptions, each with a separate host. */
function backlog(world: World): Tables {
  const tables = new Tables();
  for (let n = 0; n < SUBSCRIPTIONS; n++) {
    const id = `S${n}`;
    const row = newSubscription({
      id,
      partnerId: n,
      shard: n % SHARDS,
      host: `${id}.example`,
      kind: "immediate",
      createdAtMs: EPOCH_MS,
      ordering: "subscription",
      sequenceHeaders: false,
      intervalHours: 1,
      nextBatchAtMs: null,
    });
    for (let sequence = 1; sequence <= ENTRIES; sequence++)
      row.outbox.push({
        sequence,
        eventId: `E${n}-${sequence}`,
        isTest: false,
        history: { ...HISTORY, eventId: `E${n}-${sequence}`, partnerId: n, bytes: 0 },
        reviewId: 1,
        round: 1,
        attempt: 1,
        dueAtMs: null,
        recordedAtMs: EPOCH_MS,
        visibleMs: world.nowMs,
      });
    tables.subscriptions.set(id, row);
  }
  return tables;
}

function start() {
  const random = new Prng(1);
  const settings = { ...drawSettings(random), faults: NO_FAULTS, limits: LIMITS };
  const world = new World({ settings, random, traced: false });
  const tables = backlog(world);
  const postgres = new Server("postgres", { typicalMs: 1.5, worstMs: 5, inOrder: false });
  const network = new Network(world);
  const deps = { world, tables, postgres, network, monitor: new Monitor(world, tables) };
  const process = new Process(world, "D1", 0);
  const seen = { posts: 0, answerMs: SLOW_MS, actors: 0, entries: 0 };
  const deliver: Deliver = async () => {
    seen.posts += 1;
    const durationMs = seen.answerMs;
    await process.clock.sleep(durationMs);
    const answer = { statusCode: 204, responseHeaders: {}, responseExcerpt: "" };
    return { kind: "accepted", ...answer, responseTruncated: false, durationMs, resent: false };
  };
  const real = createStore(deps, process);
  const store: DispatchStore = {
    ...real,
    async load(requests) {
      seen.entries = Math.max(seen.entries, ...requests.map(({ limit }) => limit));
      seen.actors = Math.max(seen.actors, dispatcher.workload.actors);
      await process.clock.sleep(requests.length * LOAD_MS);
      return real.load(requests);
    },
  };
  const dispatcher = new Dispatcher({
    clock: process.clock,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    schedule: new Redis(world).scheduleFor(network, process),
    leases: createLeases(deps, process),
    store,
    deliver,
    retryDelaysMs: settings.retryDelaysMs,
    newUlid: (atMs) => process.newUlid(atMs),
    limits: LIMITS,
  });
  void dispatcher.run(new AbortController().signal);
  const pass = (ms: number) => {
    const endMs = world.nowMs + ms;
    const before = seen.posts;
    world.loop.after(ms, () => {});
    world.loop.runWhile(() => world.nowMs < endMs);
    return seen.posts - before;
  };
  return { pass, seen, dispatcher };
}
