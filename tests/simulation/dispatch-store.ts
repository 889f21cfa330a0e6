import type { Loaded, LoadRequest } from "../../dispatcher/actor/event.ts";
import type { Entry, Subscription } from "../../dispatcher/actor/entry.ts";
import type { Mark } from "../../db/marks.ts";
import type { MarkStore } from "../../dispatcher/store/settle-marks.ts";
import type { DispatchStore } from "../../dispatcher/store/store.ts";
import type { SweptSubscription } from "../../dispatcher/store/sweep.ts";
import { dispatchBatch } from "./batch.ts";
import { commitAttempts } from "./commit.ts";
import type { Monitor } from "./monitor.ts";
import type { Network, Server } from "./network.ts";
import type { Process } from "./process.ts";
import {
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
      let [settingsMs, entriesMs] = [0, 0];
      monitor.loading(process, requests);
      // The two statements run on two connections, so each may see another state.
      const [subscriptions, entries] = await Promise.all([
        network.call(process, { server, name: "load subscriptions" }, () => {
          settingsMs = world.nowMs;
          return requests.map((one) => activeSubscription(tables, one.id));
        }),
        network.call(process, { server, name: "load entries" }, () => {
          entriesMs = world.nowMs;
          return requests.map((one) => nextEntries(tables, one));
        }),
      ]);
      return requests.map((request, i) => {
        const snapshotMs = Math.min(settingsMs, entriesMs);
        monitor.loaded(process, request.id, {
          snapshotMs,
          lastMs: Math.max(settingsMs, entriesMs),
        });
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
        if (isSame && target.outbox.every((row) => row.sequence > mark.through))
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
  const found: OutboxRow[] = [];
  let [entries, tests] = [0, 0];
  for (const row of unmarked(subscription)) {
    if (row.isTest) {
      if (tests++ < TESTS_LIMIT) found.push(row);
    } else if (
      entries < request.limit &&
      row.sequence > request.after &&
      !request.exceptReviews.includes(row.reviewId)
    ) {
      entries += 1;
      found.push(row);
    }
  }
  return found.map(toEntry);
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
