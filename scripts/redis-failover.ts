// Measures a Redis failover: `bun scripts/redis-failover.ts [--seconds 30] [--rate 200] [--signal SIGKILL|SIGSTOP]`.
// Two dispatchers run with three Sentinels, a master and a replica of Debian's redis-server, while events arrive at a
// steady rate. After a third of the time the master is killed or stopped. The report shows when deliveries resume,
// and checks that none was lost or out of order.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { connect } from "../db/client.ts";
import { migrate } from "../db/migrate.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/log.ts";
import { connectRedis } from "../src/lib/redis.ts";
import { recordActions } from "../src/outbox/queries.ts";
import { createSchedule } from "../src/outbox/schedule.ts";
import { actionOf, insertPlace, subscribe } from "./bench/backlog.ts";
import { until } from "./bench/rig.ts";
import { startStores } from "./demo/stores/keep.ts";
import { hasRedisServer, startSentinels } from "./demo/stores/redis-servers.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "30" },
    rate: { type: "string", default: "200" },
    signal: { type: "string", default: "SIGKILL" },
  },
});
const ROOT = join(import.meta.dir, "..");
const runMs = Number(values.seconds) * 1_000;
const gapMs = 1_000 / Number(values.rate);
const signal = values.signal === "SIGSTOP" ? "SIGSTOP" : "SIGKILL";
const SUBSCRIPTIONS = 50;
/** A faster delivery was triggered by a wake, not by a sweep. */
const AT_ONCE_MS = 250;

interface Event {
  readonly id: string;
  readonly host: string;
  readonly acceptedAt: number;
  arrivedAt: number | undefined;
}

if (!hasRedisServer()) process.exit(1);
const folder = mkdtempSync(join(tmpdir(), "reviewrelay-failover-"));
chmodSync(folder, 0o711);
const stores = await startStores({
  folder,
  temporary: true,
  logFile: join(folder, "stores.log"),
  postgres: { durable: true },
});
const databaseUrl = stores.databaseUrl ?? "";
const sentinels = await startSentinels();
await migrate(databaseUrl);
const key = crypto.getRandomValues(new Uint8Array(32));
const db = connect(databaseUrl, { max: 10, name: "failover" });
const log = createLog({ level: "error", role: "failover", clock: systemClock });
const redis = await connectRedis(sentinels.url, log);
const schedule = createSchedule(redis, "rr:", log);

const events = new Map<string, Event>();
const arrivals = new Map<string, string[]>();
let repeats = 0;
const receiver = Bun.serve({
  hostname: "0.0.0.0",
  port: 0,
  async fetch(request) {
    await request.arrayBuffer();
    const id = request.headers.get("x-svc-delivery") ?? "";
    const host = new URL(request.url).hostname;
    const list = arrivals.get(host) ?? [];
    arrivals.set(host, list);
    if (list.includes(id)) repeats += 1;
    else list.push(id);
    early.set(id, performance.now());
    return new Response(null);
  },
});
/** Arrival times of events that arrived before their writer saw the commit. */
const early = new Map<string, number>();

const hosts = Array.from({ length: SUBSCRIPTIONS }, (_, n) => `127.3.0.${n + 1}`);
const subscriptions = await subscribe(
  db,
  key,
  hosts.map((host) => `http://${host}:${receiver.port}/hook`),
);
const place = await insertPlace(db);
const dispatchers = [startDispatcher(), startDispatcher()];

try {
  await until("shards that are held", async () => {
    const rows = await db.sql`select 1 from shards where dispatcher_id is not null`;
    return rows.length === 64;
  });
  const failedAt = await play();
  await until("all arrived", async () => early.size >= events.size).catch(() => {});
  await tell(failedAt);
} finally {
  for (const one of dispatchers) one.kill("SIGTERM");
  redis.disconnect();
  await db.close();
  await receiver.stop(true);
  await sentinels.stop();
  await stores.stop();
}
process.exit(0);

/** Writes events at the given rate; returns when the master failed. */
async function play(): Promise<number> {
  const startedAt = performance.now();
  let failedAt = Number.POSITIVE_INFINITY;
  const writing: Promise<void>[] = [];
  for (let n = 0; performance.now() - startedAt < runMs; n++) {
    writing.push(write(n));
    if (failedAt === Number.POSITIVE_INFINITY && performance.now() - startedAt > runMs / 3) {
      failedAt = performance.now();
      (await sentinels.master()).signal(signal);
    }
    const due = startedAt + (n + 1) * gapMs;
    await Bun.sleep(Math.max(0, due - performance.now()));
  }
  await Promise.all(writing);
  return failedAt;
}

/** Writes one event as the API does: the transaction, then the wake. */
async function write(n: number): Promise<void> {
  const subscription = subscriptions[n % SUBSCRIPTIONS];
  if (subscription === undefined) return;
  const action = actionOf(place, subscription);
  const wakes = await db.transaction((tx) => recordActions(tx, [action], new Date()));
  const acceptedAt = performance.now();
  const host = hosts[n % SUBSCRIPTIONS] ?? "";
  events.set(action.eventId, { id: action.eventId, host, acceptedAt, arrivedAt: undefined });
  await schedule.wake(wakes);
}

async function tell(failedAt: number): Promise<void> {
  for (const event of events.values()) event.arrivedAt = early.get(event.id);
  const all = [...events.values()].toSorted((a, b) => a.acceptedAt - b.acceptedAt);
  const after = all.filter(({ acceptedAt }) => acceptedAt >= failedAt);
  const slow = after.filter((event) => delayOf(event) > AT_ONCE_MS);
  const first = Math.min(...after.map(({ arrivedAt }) => arrivedAt ?? Number.NaN));
  const lastSlow = slow.at(-1)?.acceptedAt ?? failedAt;
  const before = all.filter(({ acceptedAt }) => acceptedAt < failedAt).map(delayOf);
  console.log(`${signal} of the master, ${all.length} events accepted at ${values.rate}/s`);
  console.log(`lost: ${all.filter(({ arrivedAt }) => arrivedAt === undefined).length}`);
  console.log(`out of order: ${await disorder()} of ${hosts.length} subscriptions`);
  console.log(`repeats: ${repeats}`);
  console.log(`before: p50 ${percentile(before, 0.5)} ms, p99 ${percentile(before, 0.99)} ms`);
  console.log(`first delivery of an event accepted after: ${Math.round(first - failedAt)} ms`);
  console.log(`slowest: ${percentile(after.map(delayOf), 1)} ms`);
  console.log(`announced at once again after: ${Math.round(lastSlow - failedAt)} ms`);
  for (let second = 0; second < (runMs * 2) / 3_000; second++) {
    const part = after.filter(
      ({ acceptedAt }) => Math.floor((acceptedAt - failedAt) / 1_000) === second,
    );
    const delays = part.map(delayOf);
    console.log(
      `  second ${second}: ${part.length} events, p50 ${percentile(delays, 0.5)} ms, p99 ${percentile(delays, 0.99)} ms`,
    );
  }
}

function delayOf({ acceptedAt, arrivedAt = Number.NaN }: Event): number {
  return arrivedAt - acceptedAt;
}

/** Counts the subscriptions whose events arrived in another order than their commits. */
async function disorder(): Promise<number> {
  let count = 0;
  for (const [n, subscription] of subscriptions.entries()) {
    const rows = await db.sql<{ event_id: string }[]>`
      select event_id from review_history where partner_id = ${subscription.partnerId} order by id`;
    const got = arrivals.get(hosts[n] ?? "") ?? [];
    const want = rows.map((row) => row.event_id).filter((id) => got.includes(id));
    if (want.some((id, at) => id !== got[at])) count += 1;
  }
  return count;
}

function percentile(given: readonly number[], share: number): number {
  const sorted = given.toSorted((a, b) => a - b);
  return Math.round(
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN,
  );
}

function startDispatcher(): ChildProcess {
  return spawn(process.execPath, ["dispatcher/main.ts", "dispatcher"], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env["PATH"] ?? "",
      DATABASE_URL: databaseUrl,
      REDIS_URL: sentinels.url,
      MASTER_KEY: Buffer.from(key).toString("base64"),
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      PARENT_PID: String(process.pid),
      LOG_LEVEL: "error",
    },
  });
}
