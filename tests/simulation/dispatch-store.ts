import type { Entry, LoadRequest, Subscription } from "../../dispatcher/actor/event.ts";
import { testFactsOf } from "../../src/outbox/test-event.ts";
import type { Answer, DispatchStore } from "../../dispatcher/store/store.ts";
import type { SweptSubscription } from "../../dispatcher/store/sweep.ts";
import { dispatchBatch } from "./batch.ts";
import { commitAttempts } from "./commit.ts";
import { bytesOf, isQueueEmpty, passLogged, postponeBehind, queueOf, readQueue } from "./log.ts";
import type { Monitor } from "./monitor.ts";
import { numberOf, settledBefore, settledLimit } from "./numbers.ts";
import { type Network, type Server, SqlError, UNREADABLE } from "./network.ts";
import type { Process } from "./process.ts";
import {
  NAMED,
  type OutboxRow,
  type QueuedRow,
  type SubscriptionRow,
  type Tables,
} from "./tables.ts";
import type { World } from "./world.ts";

export interface StoreDeps {
  readonly world: World;
  readonly network: Network;
  readonly postgres: Server;
  readonly tables: Tables;
  readonly monitor: Monitor;
}

const TESTS_LIMIT = 16;

/** The simulated PostgreSQL for one dispatcher process; the real one is `createStore` of the dispatcher. */
export function createStore(deps: StoreDeps, process: Process): DispatchStore {
  const { network, postgres: server, tables, world, monitor } = deps;
  return {
    async load(requests) {
      monitor.loading(process, requests);
      const { dispatcherId } = process;
      const found = await network.call(process, { server, name: "load" }, async (session) => {
        failIfUnreadable(deps, requests);
        const reads = requests.map((request) => read(deps, request));
        const walked = reads.reduce((sum, one) => sum + one.walked, 0);
        if (world.settings.rowMs > 0) await session.work(world.settings.rowMs * walked);
        return reads;
      });
      return found.map(({ answer, snapshotMs }) => {
        // A process drops what it asked for under a former lease.
        if (process.dispatcherId === dispatcherId) monitor.loaded(process, answer, snapshotMs);
        return answer;
      });
    },
    passWindow: (id) =>
      network.call(process, { server, name: "pass window" }, async (session) => {
        // Entries after a long queue of left-out reviews are late by the time that it takes to pass the queue.
        const watch = monitor.watch(id);
        watch.hinderedMs = Math.max(watch.hinderedMs, world.nowMs);
        await session.work(world.random.latency(1, 20));
        passLogged(tables.subscription(id), world.settings.window);
        world.trace("postgres", `gives the next events of ${id} rows`);
      }),
    postpone: ({ id }) =>
      network.call(process, { server, name: "postpone" }, async (session) => {
        await session.work(world.random.latency(1, 20));
        postponeBehind(tables.subscription(id), world.postgresMs);
      }),
    hold: () => Promise.reject(new Error("Every simulated account is active.")),
    commit(dispatcherId, records) {
      const monotonicMs = process.clock.monotonicMs();
      const commit = { world, tables, monitor, dispatcherId, records, monotonicMs };
      return network.call(process, { server, name: "commit" }, (session) =>
        commitAttempts(commit, session),
      );
    },
    dispatchBatch: (batch) =>
      network.call(process, { server, name: "dispatch batch" }, (session) =>
        dispatchBatch(deps, batch, session),
      ),
    sweep: (shards, limit) =>
      network.call(process, { server, name: "sweep" }, async (session) => {
        const { rowMs } = world.settings;
        if (rowMs > 0) await session.work(rowMs * tables.subscriptions.size);
        return sweepShards(tables, { shards, limit }, world.postgresMs);
      }),
  };
}

/** Fails like the real statement, for the whole group, if a row of one subscription is damaged. */
function failIfUnreadable(
  { world, tables }: Pick<StoreDeps, "world" | "tables">,
  requests: readonly LoadRequest[],
): void {
  if (!requests.some(({ id }) => tables.subscription(id).unreadableUntilMs > world.nowMs)) return;
  // Only that subscription may be late: the others are soon read without it.
  if (requests.length === 1) world.hinderedMs = world.nowMs;
  throw new SqlError(UNREADABLE);
}

interface Read {
  readonly answer: Answer;
  readonly snapshotMs: number;
  /** The number of rows and events that were read. */
  readonly walked: number;
}

/** Reads a subscription and its entries at one instant. */
function read({ tables, world }: StoreDeps, request: LoadRequest): Read {
  const row = tables.subscription(request.id);
  const snapshotMs = world.nowMs;
  const subscription = activeSubscription(tables, request.id);
  if (subscription === undefined)
    return { answer: { request, found: undefined }, snapshotMs, walked: 0 };
  const reading = { window: world.settings.window, nowMs: world.postgresMs };
  const { entries, isFull, isBehind, nextDueMs, walked } = readQueue(row, request, reading);
  const tests = nextTests(row.outbox.filter(({ sequence }) => sequence > row.skippedThrough));
  const found = {
    subscription,
    entries: entries.map((entry) => toEntry(tables, row, entry)),
    tests: tests.map((test) => toEntry(tables, row, { ...test, isLogged: false })),
    lastSequence: row.lastSequence,
    nextDueAt: nextDueMs === null ? undefined : new Date(nextDueMs),
  };
  return { answer: { request, found, isFull, isBehind }, snapshotMs, walked };
}

function activeSubscription(tables: Tables, id: string): Subscription | undefined {
  const row = tables.subscription(id);
  if (row.state !== "active") return undefined;
  return {
    partnerId: row.partnerId,
    webhookUrl: urlOf(row),
    ordering: row.ordering,
    secret: "secret",
    previousSecret: null,
    standardWebhooks: false,
    settledLimit: row.sequenceHeaders ? settledLimit(row) : null,
    headers: null,
    nextBatchAt: row.nextBatchAtMs === null ? null : new Date(row.nextBatchAtMs),
    pendingTestEventId: null,
    consecutiveFailureCount: row.failures,
    erasures: row.erasures,
    // Every simulated account is active.
    inactiveAccounts: "{}",
  };
}

/** Returns a URL whose path has the subscription and the version of the settings, so that a POST shows them. */
function urlOf(row: SubscriptionRow): string {
  return `http://${row.host}/${row.id}/${row.version}`;
}

/** Returns the tests that are due first, so that tests which wait for a retry take no place of the others. */
export function nextTests(outbox: readonly OutboxRow[]): OutboxRow[] {
  return outbox
    .filter((row) => row.isTest)
    .toSorted((a, b) => (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0) || a.sequence - b.sequence)
    .slice(0, TESTS_LIMIT)
    .toSorted((a, b) => a.sequence - b.sequence);
}

function toEntry({ erasedMs }: Tables, target: SubscriptionRow, row: QueuedRow): Entry {
  const event = row.isTest ? "webhook.test" : "review_updated";
  const id = { eventId: row.eventId, event, recordedAt: new Date(row.recordedAtMs) };
  const number = target.sequenceHeaders ? numberOf(target, row) : null;
  return {
    ...id,
    sequence: row.sequence,
    isLogged: row.isLogged,
    isTest: row.isTest,
    payloadMode: "minimal",
    reviewId: row.reviewId,
    batchJobId: null,
    round: row.round,
    attempt: row.attempt,
    bytes: bytesOf(row),
    isFirstOnly: row.isFirstOnly === true,
    dueAt: row.dueAtMs === null ? null : new Date(row.dueAtMs),
    number,
    settledBefore: number === null ? 0 : settledBefore(target, row),
    // Only the event id and the name in the body are read.
    facts: row.isTest
      ? undefined
      : { ...testFactsOf(id, 1), reviewHistoryId: erasedMs.has(row.eventId) ? 0 : NAMED },
  };
}

/** The time ahead for which the sweep reports due work, because the next sweep may be late. */
const SOON_MS = 6_000;

export function sweepShards(
  tables: Tables,
  {
    shards,
    limit = Number.POSITIVE_INFINITY,
  }: { shards: readonly number[]; limit?: number | undefined },
  nowMs: number,
): SweptSubscription[] {
  const found: SweptSubscription[] = [];
  const walked = new Map<number, number>();
  for (const row of [...tables.subscriptions.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    const { id, shard, state, nextBatchAtMs } = row;
    if (!shards.includes(shard)) continue;
    const [first] = queueOf(row);
    const place = (walked.get(shard) ?? 0) + (first === undefined ? 0 : 1);
    walked.set(shard, place);
    if (state !== "active") continue;
    const swept = { subscriptionId: id, shard };
    if (first !== undefined && place <= limit) {
      const head = queueOf(row).find(({ isTest }) => !isTest);
      const waitedMs = head ? nowMs - Math.max(head.recordedAtMs, head.dueAtMs ?? 0) : null;
      found.push({ ...swept, dueInMs: dueAtMs(row, nowMs) - nowMs, waitedMs });
    }
    if (nextBatchAtMs !== null)
      found.push({ ...swept, dueInMs: nextBatchAtMs - nowMs, waitedMs: null });
  }
  return found.filter(({ dueInMs }) => dueInMs <= SOON_MS);
}

/** Returns the time at which a lane may be due; with a lane per review any of them may be. */
function dueAtMs(row: SubscriptionRow, nowMs: number): number {
  if (row.ordering === "review" && !isQueueEmpty(row)) return nowMs;
  const queue = [...queueOf(row)];
  const due = (one: OutboxRow) => one.dueAtMs ?? nowMs;
  const main = queue.find((one) => !one.isTest);
  const tests = queue.filter((one) => one.isTest).map(due);
  return Math.min(...tests, main === undefined ? Number.POSITIVE_INFINITY : due(main));
}
