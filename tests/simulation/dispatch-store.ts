import type { Loaded, LoadRequest } from "../../dispatcher/actor/event.ts";
import type { Entry, Subscription } from "../../dispatcher/actor/entry.ts";
import type { Mark } from "../../db/marks.ts";
import type { MarkStore } from "../../dispatcher/store/settle-marks.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { SweptSubscription } from "../../dispatcher/store/sweep.ts";
import { dispatchBatch } from "./batch.ts";
import { commitAttempts } from "./commit.ts";
import type { Monitor } from "./monitor.ts";
import { SqlError, UNREADABLE, type Network, type Server } from "./network.ts";
import type { Process } from "./process.ts";
import {
  indexFrom,
  settleChunk,
  unmarked,
  type OutboxRow,
  type SubscriptionRow,
  type Tables,
} from "./tables.ts";
import { EPOCH_MS, type World } from "./world.ts";

export interface StoreDeps {
  readonly world: World;
  readonly network: Network;
  readonly postgres: Server;
  readonly tables: Tables;
  readonly monitor: Monitor;
}

const TESTS_LIMIT = 16;

/** The simulated Postgres as one dispatcher process sees it: what `createStore` is over the real one. */
export function createStore(deps: StoreDeps, process: Process): DispatchStore {
  const { network, postgres: server, tables, world, monitor } = deps;
  return {
    async load(requests) {
      monitor.loading(process, requests);
      const { snapshotMs, found } = await network.call(process, { server, name: "load" }, () => {
        failIfUnreadable(deps, requests);
        return { snapshotMs: world.nowMs, found: readAll(tables, requests) };
      });
      return found.map(({ request, subscription, ...rest }) => {
        monitor.loaded(process, request, snapshotMs);
        return toLoaded(request, subscription, rest);
      });
    },
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
      network.call(process, { server, name: "sweep" }, () =>
        sweepShards(tables, { shards, limit }, world.postgresMs),
      ),
    marks: createMarks(deps, process),
  };
}

function createMarks({ network, postgres: server, tables, world }: StoreDeps, process: Process) {
  const ask = <T>(name: string, serve: () => T) =>
    network.call(process, { server, name }, async (session) => {
      await session.work(world.random.latency(1, 30));
      return serve();
    });
  const marks: MarkStore = {
    open: (shards) => ask("open marks", () => openMarks(tables, shards)),
    settle: (mark) =>
      ask("settle marked", () => {
        const target = tables.subscription(mark.subscriptionId);
        // Others may have ended it, or marked more.
        const { mark: row } = target;
        if (row === undefined) return { taken: 0, last: null };
        return settleChunk(target, { ...row, through: mark.through }, world.settings.chunk);
      }),
    end: (mark) =>
      ask("end mark", () => {
        const target = tables.subscription(mark.subscriptionId);
        const isSame = target.mark?.through === mark.through;
        const [first] = target.outbox;
        if (isSame && (first === undefined || first.sequence > mark.through))
          target.mark = undefined;
      }),
  };
  return marks;
}

function openMarks(tables: Tables, shards: readonly number[]): Mark[] {
  const found: Mark[] = [];
  for (const { id, shard, mark } of tables.subscriptions.values())
    if (mark !== undefined && shards.includes(shard)) {
      const { settledMs, ...rest } = mark;
      found.push({ ...rest, subscriptionId: id, shard, settledAt: new Date(EPOCH_MS + settledMs) });
    }
  return found;
}

/** Fails as the real statement does, for all that is asked, if a row of one subscription is damaged. */
function failIfUnreadable(
  { world, tables }: Pick<StoreDeps, "world" | "tables">,
  requests: readonly LoadRequest[],
): void {
  if (!requests.some(({ id }) => tables.subscription(id).unreadableUntilMs > world.nowMs)) return;
  world.hinderedMs = world.nowMs;
  throw new SqlError(UNREADABLE);
}

/** Subscriptions and entries as they are at one moment. */
function readAll(tables: Tables, requests: readonly LoadRequest[]) {
  return requests.map((request) => ({
    request,
    subscription: activeSubscription(tables, request.id),
    entries: nextEntries(tables, request),
    lastSequence: lastSequence(tables, request),
  }));
}

function activeSubscription(tables: Tables, id: string): Subscription | undefined {
  const row = tables.subscription(id);
  if (row.state !== "active") return undefined;
  return {
    id,
    shard: row.shard,
    partnerId: row.partnerId,
    webhookUrl: urlOf(row),
    ordering: row.ordering,
    secret: "secret",
    previousSecret: null,
    nextBatchAt: row.nextBatchAtMs === null ? null : new Date(row.nextBatchAtMs),
  };
}

/** The path names the subscription and the version of the settings, so that a POST tells them. */
function urlOf(row: SubscriptionRow): string {
  return `http://${row.host}/${row.id}/${row.version}`;
}

function nextEntries(tables: Tables, request: LoadRequest): Entry[] {
  const subscription = tables.subscription(request.id);
  if (subscription.state !== "active") return [];
  const outbox = unmarked(subscription);
  const entries: OutboxRow[] = [];
  for (let at = indexFrom(outbox, request.after + 1); entries.length < request.limit; at++) {
    const row = outbox[at];
    if (row === undefined) break;
    if (!row.isTest && !request.exceptReviews.includes(row.reviewId)) entries.push(row);
  }
  const tests = nextTests(outbox);
  if (tests.length === 0) return entries.map(toEntry);
  return [...entries, ...tests].toSorted((a, b) => a.sequence - b.sequence).map(toEntry);
}

/** Those that are due first: tests that wait for a retry take no place from the others. */
export function nextTests(outbox: readonly OutboxRow[]): OutboxRow[] {
  return outbox
    .filter((row) => row.isTest)
    .toSorted((a, b) => (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0) || a.sequence - b.sequence)
    .slice(0, TESTS_LIMIT);
}

function lastSequence(tables: Tables, { id, inherits }: LoadRequest): number | undefined {
  const row = tables.subscription(id);
  return inherits && row.open ? row.lastSequence : undefined;
}

function toEntry(row: OutboxRow): Entry {
  const { eventId } = row;
  return {
    sequence: row.sequence,
    eventId,
    event: row.isTest ? "webhook.test" : "review_updated",
    isTest: row.isTest,
    payloadMode: "minimal",
    reviewId: row.reviewId,
    round: row.round,
    attempt: row.attempt,
    dueAt: row.dueAtMs === null ? null : new Date(row.dueAtMs),
    // Nobody looks at what the body says beyond the event.
    source: {
      kind: "test",
      event: "webhook.test",
      eventId,
      partnerId: 1,
      occurredAt: new Date(row.recordedAtMs),
    },
  };
}

function toLoaded(
  request: LoadRequest,
  subscription: Subscription | undefined,
  { entries, lastSequence: last }: { entries: readonly Entry[]; lastSequence: number | undefined },
): Loaded {
  if (subscription === undefined) return { request, found: undefined };
  return {
    request,
    found: {
      subscription,
      entries: entries.filter((entry) => !entry.isTest),
      tests: entries.filter((entry) => entry.isTest),
      lastSequence: last,
    },
  };
}

/** What is due now or so soon that the next sweep may be late for it. */
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
    const { id, shard, state, outbox, nextBatchAtMs } = row;
    if (!shards.includes(shard)) continue;
    const [head] = outbox;
    const place = (walked.get(shard) ?? 0) + (head === undefined ? 0 : 1);
    walked.set(shard, place);
    if (state !== "active") continue;
    const swept = { subscriptionId: id, shard };
    if (head !== undefined && place <= limit) {
      const waitedMs = nowMs - Math.max(head.recordedAtMs, head.dueAtMs ?? 0);
      found.push({ ...swept, dueInMs: dueAtMs(row, nowMs) - nowMs, waitedMs });
    }
    if (nextBatchAtMs !== null)
      found.push({ ...swept, dueInMs: nextBatchAtMs - nowMs, waitedMs: null });
  }
  return found.filter(({ dueInMs }) => dueInMs <= SOON_MS);
}

/** When one of its lanes may be due; with lanes by review any of them may be. */
function dueAtMs({ outbox, ordering }: SubscriptionRow, nowMs: number): number {
  if (ordering === "review") return nowMs;
  const due = (row: OutboxRow) => row.dueAtMs ?? nowMs;
  const main = outbox.find((row) => !row.isTest);
  const tests = outbox.filter((row) => row.isTest).map(due);
  return Math.min(...tests, main === undefined ? Number.POSITIVE_INFINITY : due(main));
}
