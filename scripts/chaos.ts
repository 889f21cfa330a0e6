// `bun run chaos [--rounds 20]`: two real dispatchers, 100 subscriptions of 200 events a round, and in every round a
// kill -9 of either, a FLUSHALL, 20 s without Redis and a restart of Postgres, at random moments. At the end of each
// round every event must have arrived, first arrivals in commit order, with no hand lent. Prints the seed.
import { chmodSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChildProcess, spawn } from "node:child_process";
import { parseArgs } from "node:util";

import { Redis } from "ioredis";

import { connect } from "../db/client.ts";
import { violatesUnique } from "../db/errors.ts";
import { recordActions } from "../src/outbox/queries.ts";
import { systemClock } from "../src/lib/clock.ts";
import { createLog } from "../src/lib/log.ts";
import { connectRedis } from "../src/lib/redis.ts";
import { createSchedule } from "../src/outbox/schedule.ts";
import { actionOf, insertPlace } from "./bench/events.ts";
import { subscribe, until } from "./bench/rig.ts";
import { migrate } from "../db/migrate.ts";
import { startEmbeddedPostgres } from "./demo/stores/embedded-postgres.ts";
import { startValkeyBridge } from "./demo/stores/valkey-bridge.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    subscriptions: { type: "string", default: "100" },
    events: { type: "string", default: "200" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const rounds = Number(values.rounds);
const events = Number(values.events);
const ROOT = join(import.meta.dir, "..");
const DISPATCHERS = 2;
const REDIS_DOWN_MS = 20_000;
const ROUND_MS = 25_000;
const SETTLES_WITHIN_MS = 90_000;
/** How many repeats a crash may cause per subscription: one request under way, and 16 answers not yet committed. */
const REPEATS = 17;

const folder = mkdtempSync(join(tmpdir(), "reviewrelay-chaos-"));
chmodSync(folder, 0o711);
const storeLog = openSync(join(folder, "postgres.log"), "a");
const ports = { postgres: await freePort(), redis: await freePort() };
const key = crypto.getRandomValues(new Uint8Array(32));
const random = createRandom(Number(values.seed));

const startPostgres = () =>
  startEmbeddedPostgres({ folder, port: ports.postgres, durable: true, log: storeLog });
const startRedis = () =>
  startValkeyBridge({
    port: ports.redis,
    onFailure: (error) => console.error("redis failed", error),
  });

let postgres = await startPostgres();
let redis = startRedis();
const databaseUrl = postgres.url;
const redisUrl = `redis://127.0.0.1:${ports.redis}`;
await migrate(databaseUrl);

/** Delivery ids by host, in the order of arrival. */
const arrivals = new Map<string, string[]>();
const receiver = Bun.serve({
  hostname: "0.0.0.0",
  port: 0,
  async fetch(request) {
    await request.arrayBuffer();
    const host = new URL(request.url).hostname;
    arrivals.set(host, [
      ...(arrivals.get(host) ?? []),
      request.headers.get("x-svc-delivery") ?? "",
    ]);
    return new Response(null);
  },
});

const db = connect(databaseUrl, { max: 10, name: "chaos" });
const log = createLog({ level: "error", role: "chaos", clock: systemClock });
const hint = await connectRedis(redisUrl, log);
const schedule = createSchedule(hint, "rr:", log);
const hosts = Array.from(
  { length: Number(values.subscriptions) },
  (_, n) => `127.2.${n >> 7}.${(n & 127) + 1}`,
);
const subscriptions = await subscribe(
  db,
  key,
  hosts.map((host) => `http://${host}:${receiver.port}/hook`),
);
const place = await insertPlace(db);
const dispatchers = Array.from({ length: DISPATCHERS }, () => startDispatcher());
let crashes = 0;
let failed = false;

console.log(
  `Seed ${values.seed}. ${rounds} rounds of ${hosts.length} subscriptions with ${events} events each.`,
);
try {
  for (let round = 1; round <= rounds && !failed; round++) await play(round);
} finally {
  for (const one of dispatchers) one.child.kill("SIGTERM");
  await until("the dispatchers gone", async () =>
    dispatchers.every(({ child }) => child.exitCode !== null || child.signalCode !== null),
  );
  hint.disconnect();
  await db.close();
  await receiver.stop(true);
  redis.stop();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed ? "FAILED" : `${rounds} rounds: nothing lost, nothing out of order.`);
process.exit(failed ? 1 : 0);

async function play(round: number): Promise<void> {
  for (const host of hosts) arrivals.set(host, []);
  const crashesBefore = crashes;
  const startedAt = performance.now();
  const expected = new Map<string, string[]>();
  await Promise.all([write(expected), trouble()]);
  const written = performance.now();
  const missing = () =>
    hosts.filter((host) => new Set(arrivals.get(host)).size < (expected.get(host)?.length ?? 0))
      .length;
  while (missing() > 0 && performance.now() - written < SETTLES_WITHIN_MS) await Bun.sleep(50);
  const settledMs = performance.now() - written;
  await readExpected(expected);
  let lost = 0;
  let disordered = 0;
  let repeated = 0;
  for (const host of hosts) {
    const got = arrivals.get(host) ?? [];
    const first = [...new Set(got)];
    const want = expected.get(host) ?? [];
    lost += want.filter((id) => !first.includes(id)).length;
    if (lost === 0 && first.some((id, n) => id !== want[n])) disordered += 1;
    repeated += got.length - first.length;
  }
  const bound = (crashes - crashesBefore) * REPEATS * hosts.length;
  if (lost > 0 || disordered > 0 || repeated > bound) failed = true;
  console.log(
    `round ${round}: ${lost} lost, ${disordered} subscriptions out of order, ${repeated} repeats (bound ${bound}), ` +
      `settled ${(settledMs / 1000).toFixed(1)} s after the last write, ${((performance.now() - startedAt) / 1000).toFixed(0)} s`,
  );
}

/** Writes like the API: transactions that race, each followed by its wake; one that fails is written again. */
async function write(expected: Map<string, string[]>): Promise<void> {
  const pause = ROUND_MS / (events / 4);
  await Promise.all(
    subscriptions.map(async (subscription, n) => {
      const written: string[] = [];
      for (let done = 0; done < events; done += 4) {
        const actions = Array.from({ length: 4 }, () => actionOf(place, subscription));
        await insist(async () => {
          const wakes = await db.transaction((tx) => recordActions(tx, actions, new Date()));
          void schedule.wake(wakes);
        });
        written.push(...actions.map((action) => action.eventId));
        await Bun.sleep(pause * (0.5 + random()));
      }
      expected.set(hosts[n] ?? "", written);
    }),
  );
}

/** Puts the expected events into the order of their commits, which Postgres knows. */
async function readExpected(expected: Map<string, string[]>): Promise<void> {
  for (const [n, subscription] of subscriptions.entries()) {
    const host = hosts[n] ?? "";
    const ids = expected.get(host) ?? [];
    const rows = await db.sql<{ event_id: string }[]>`
      select event_id from review_history where partner_id = ${subscription.partnerId} and event_id = any(${ids}::text[])
       order by id`;
    expected.set(
      host,
      rows.map((row) => row.event_id),
    );
  }
}

async function trouble(): Promise<void> {
  await Promise.all([
    sometimeIn(ROUND_MS).then(killOne),
    sometimeIn(ROUND_MS).then(killOne),
    sometimeIn(ROUND_MS).then(flush),
    sometimeIn(ROUND_MS / 3).then(async () => {
      redis.stop();
      await Bun.sleep(REDIS_DOWN_MS);
      redis = startRedis();
    }),
    sometimeIn(ROUND_MS).then(async () => {
      await postgres.stop();
      postgres = await startPostgres();
    }),
  ]);
}

/** Sleeps until some moment in the later four fifths of a time. */
async function sometimeIn(ms: number): Promise<void> {
  await Bun.sleep(ms * (0.2 + random() * 0.8));
}

async function killOne(): Promise<void> {
  const one = dispatchers[Math.floor(random() * dispatchers.length)];
  if (one === undefined) return;
  one.child.kill("SIGKILL");
  crashes += 1;
  await Bun.sleep(random() * 3_000);
  one.child = startDispatcher().child;
}

async function flush(): Promise<void> {
  const client = new Redis(redisUrl, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  client.on("error", () => {});
  await client
    .connect()
    .then(() => client.flushall())
    .catch(() => {});
  client.disconnect();
}

function startDispatcher(): { child: ChildProcess } {
  const child: ChildProcess = spawn(process.execPath, ["dispatcher/main.ts", "dispatcher"], {
    cwd: ROOT,
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: process.env["PATH"] ?? "",
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      MASTER_KEY: Buffer.from(key).toString("base64"),
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      PARENT_PID: String(process.pid),
      LOG_LEVEL: "error",
    },
  });
  const holder = { child };
  // A dispatcher that cannot live without a store ends; here, as under a supervisor, it is started again.
  child.once("exit", (_, signal) => {
    if (signal === null && child.exitCode !== 0 && holder.child === child)
      setTimeout(() => (holder.child = startDispatcher().child), 500);
  });
  return holder;
}

/** Tries again after an error, as a client of the API does. If the answer to a commit was lost, its events are there. */
async function insist(work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (violatesUnique(error, "review_history_event_id_key")) return;
      await Bun.sleep(200);
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        resolve(typeof address === "object" && address !== null ? address.port : 0),
      );
    });
  });
}

/** Mulberry32: small, and the same for the same seed. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
