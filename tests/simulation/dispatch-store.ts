import type { Loaded, LoadRequest } from "../../dispatcher/actor/event.ts";
import type { Entry, Subscription } from "../../dispatcher/actor/entry.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { SweptSubscription } from "../../dispatcher/store/sweep.ts";
import { dispatchBatch } from "./batch.ts";
import { commitAttempts } from "./commit.ts";
import type { Monitor } from "./monitor.ts";
import type { Network, Server } from "./network.ts";
import type { Process } from "./process.ts";
import type { OutboxRow, SubscriptionRow, Tables } from "./tables.ts";
import type { World } from "./world.ts";

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
      let snapshotMs = Number.POSITIVE_INFINITY;
      const at = <T>(read: () => T) => {
        snapshotMs = Math.min(snapshotMs, world.nowMs);
        return read();
      };
      monitor.loading(process, requests);
      // The two statements run on two connections, so each may see another state.
      const [subscriptions, entries] = await Promise.all([
        network.call(process, { server, name: "load subscriptions" }, () =>
          at(() => requests.map((one) => activeSubscription(tables, one.id))),
        ),
        network.call(process, { server, name: "load entries" }, () =>
          at(() => requests.map((one) => nextEntries(tables, one))),
        ),
      ]);
      return requests.map((request, i) => {
        monitor.loaded(process, request.id, snapshotMs);
        return toLoaded(request, subscriptions[i], entries[i] ?? []);
      });
    },
    commit: (dispatcherId, records) =>
      network.call(process, { server, name: "commit" }, (session) =>
        commitAttempts({ world, tables, monitor, dispatcherId, records }, session),
      ),
    dispatchBatch: (batch) =>
      network.call(process, { server, name: "dispatch batch" }, (session) =>
        dispatchBatch(deps, batch, session),
      ),
    sweep(shards) {
      const nowMs = process.wallMs;
      return network.call(process, { server, name: "sweep" }, () =>
        sweepShards(tables, shards, nowMs),
      );
    },
  };
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
  const { outbox } = tables.subscription(request.id);
  const entries = outbox
    .filter((row) => !row.isTest && row.sequence > request.after)
    .filter((row) => !request.exceptReviews.includes(row.reviewId))
    .slice(0, request.limit);
  return [...entries, ...nextTests(outbox)].map(toEntry);
}

/** Those that are due first: tests that wait for a retry take no place from the others. */
export function nextTests(outbox: readonly OutboxRow[]): OutboxRow[] {
  return outbox
    .filter((row) => row.isTest)
    .toSorted((a, b) => (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0) || a.sequence - b.sequence)
    .slice(0, TESTS_LIMIT)
    .toSorted((a, b) => a.sequence - b.sequence);
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
    source: { kind: "test", eventId, partnerId: 1, occurredAt: new Date(row.recordedAtMs) },
  };
}

function toLoaded(
  request: LoadRequest,
  subscription: Subscription | undefined,
  entries: readonly Entry[],
): Loaded {
  if (subscription === undefined) return { request, found: undefined };
  return {
    request,
    found: {
      subscription,
      entries: entries.filter((entry) => !entry.isTest),
      tests: entries.filter((entry) => entry.isTest),
    },
  };
}

export function sweepShards(
  tables: Tables,
  shards: readonly number[],
  nowMs: number,
): SweptSubscription[] {
  const found: SweptSubscription[] = [];
  for (const {
    id,
    shard,
    state,
    outbox,
    ordering,
    nextBatchAtMs,
  } of tables.subscriptions.values()) {
    if (state !== "active" || !shards.includes(shard)) continue;
    const swept = { subscriptionId: id, shard };
    const [head] = outbox;
    const always = ordering === "review" || outbox.some((row) => row.isTest);
    if (head !== undefined) {
      const dueAt = new Date(always ? nowMs : (head.dueAtMs ?? nowMs));
      const headSince = new Date(Math.max(head.recordedAtMs, head.dueAtMs ?? 0));
      found.push({ ...swept, dueAt, headSince });
    }
    if (nextBatchAtMs !== null)
      found.push({ ...swept, dueAt: new Date(nextBatchAtMs), headSince: null });
  }
  return found;
}
