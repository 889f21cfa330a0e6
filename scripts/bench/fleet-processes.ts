// The processes of `bench fleet`: stores behind a pooler, and the requested numbers of APIs and dispatchers.

import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { holdSequences, recordActions } from "../../src/outbox/queries.ts";
import { createSchedule } from "../../src/outbox/schedule.ts";
import { freePort } from "../chaos/addresses.ts";
import { findPooler, startPooler } from "../chaos/pooler.ts";
import { startStores } from "../demo/stores/keep.ts";
import { type Role, ROOT, type Running, startProcess } from "../proof/product.ts";
import { actionOf, insertPlace } from "./events.ts";
import { quantile, round } from "./figures.ts";
import { type BenchSubscription, postgresCpuMs, type Sink, startSink } from "./rig.ts";

/** How many processes start concurrently. */
const AT_ONCE = 4;
const FEW_CONNECTIONS = {
  DISPATCHER_CONNECTIONS: "1",
  API_CONNECTIONS: "2",
  INTAKE_CONNECTIONS: "2",
};
const SETTINGS = ["max_connections=500", "shared_preload_libraries=pg_stat_statements"];

export interface Fleet {
  readonly db: RawDb;
  readonly redisUrl: string;
  readonly key: Uint8Array;
  readonly sink: Sink;
  /** A description of the pooler between the processes and the database. */
  readonly before: string;
  /** User and system time of all database processes so far. */
  postgresCpuMs(): number | undefined;
  start(role: Role, count: number): Promise<Running[]>;
  /** Counts a process's connections to the database or its pooler. */
  sessionsOf(pid: number): number;
  stop(): Promise<void>;
}

export async function startFleet(isDirect: boolean): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-fleet-"));
  chmodSync(folder, 0o711);
  const stores = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: { durable: true, settings: SETTINGS },
    redis: true,
  });
  const { databaseUrl = "", redisUrl = "" } = stores;
  await migrate(databaseUrl);
  const db = connect(databaseUrl, { max: 4, name: "bench" });
  await db.sql`create extension if not exists pg_stat_statements`;
  const sink = await startSink();
  const pooler =
    isDirect || findPooler() === null
      ? undefined
      : await startPooler(folder, { url: databaseUrl, port: await freePort() });
  const url = new URL(databaseUrl);
  if (pooler !== undefined) {
    url.port = String(pooler.port);
    url.searchParams.set("prepare", "false");
  }
  const key = randomBytes(32);
  const env = {
    ...FEW_CONNECTIONS,
    DATABASE_URL: url.href,
    REDIS_URL: redisUrl,
    MASTER_KEY: key.toString("base64"),
    LOG_LEVEL: "warn",
  };
  const running: Running[] = [];
  const startOne = async (role: Role) => {
    const one = await startProcess({ tree: ROOT, role, port: await freePort(), env, folder });
    running.push(one);
    return one;
  };
  return {
    db,
    redisUrl,
    key,
    sink,
    before: pooler === undefined ? "none" : "PgBouncer, transaction mode, 40 sessions of its own",
    postgresCpuMs: () => postgresCpuMs(folder),
    start: (role, count) => inTurns(count, () => startOne(role)),
    sessionsOf: (pid) => connectionsTo(pid, Number(url.port || 5432)),
    async stop() {
      await Promise.all(running.map((one) => one.stop()));
      sink.child.kill("SIGTERM");
      await pooler?.stop();
      await db.close();
      await stores.stop();
    },
  };
}

async function inTurns<T>(count: number, begin: () => Promise<T>): Promise<T[]> {
  const begun: T[] = [];
  while (begun.length < count) {
    const some = Math.min(AT_ONCE, count - begun.length);
    begun.push(...(await Promise.all(Array.from({ length: some }, begin))));
  }
  return begun;
}

const ESTABLISHED = "01";

/** Counts a process's connections to a port of this machine. */
function connectionsTo(pid: number, port: number): number {
  const hexPort = port.toString(16).toUpperCase().padStart(4, "0");
  const inodes = new Set<string>();
  for (const table of ["tcp", "tcp6"])
    for (const line of readFileSync(`/proc/net/${table}`, "utf8").split("\n").slice(1)) {
      const [, , remote = "", state, , , , , , inode = ""] = line.trim().split(/\s+/);
      if (remote.endsWith(`:${hexPort}`) && state === ESTABLISHED) inodes.add(`socket:[${inode}]`);
    }
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  return open.filter((target) => inodes.has(target)).length;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // The descriptor was closed meanwhile.
    return "";
  }
}

const GROUPS_A_SECOND = 50;

/**
 * Creates the load of `bench fleet`: writes events as the API does, for all subscriptions in turn, and reports their
 * delays.
 */
export async function openLoad(
  { db, redisUrl, sink }: Fleet,
  subscriptions: readonly BenchSubscription[],
) {
  const log = createLog({ level: "warn", role: "bench", clock: systemClock });
  const redis = await connectRedis(redisUrl, log);
  const schedule = createSchedule(redis, "rr:", log);
  const place = await insertPlace(db);
  const sent = new Map<string, { readonly at: number; readonly shard: number }>();
  let next = 0;
  const write = async (count: number) => {
    const some = Array.from({ length: count }, () => subscriptions[next++ % subscriptions.length]);
    const actions = some.flatMap((one) => (one ? [actionOf(place, one)] : []));
    const wakes = await db.transaction(async (tx) => {
      await holdSequences(tx, [...new Set(actions.map(({ partnerId }) => partnerId))], true);
      return recordActions(tx, actions, new Date());
    });
    const at = performance.timeOrigin + performance.now();
    for (const [i, { eventId }] of actions.entries())
      sent.set(eventId, { at, shard: some[i]?.shard ?? -1 });
    await schedule.wake(wakes);
  };
  return {
    sent,
    async run(rate: number, ms: number, over?: AbortSignal) {
      const endMs = performance.now() + ms;
      const writes: Promise<void>[] = [];
      for (let n = 0; performance.now() < endMs; n++) {
        if (over?.aborted === true) break;
        writes.push(write(rate / GROUPS_A_SECOND));
        const dueMs = endMs - ms + ((n + 1) * 1_000) / GROUPS_A_SECOND;
        await Bun.sleep(Math.max(0, dueMs - performance.now()));
      }
      await Promise.all(writes);
    },
    async delays() {
      const { arrivals } = await sink.report(true);
      const delays = arrivals
        .flatMap(([id, , , at]) => at - (sent.get(id)?.at ?? Number.NaN))
        .filter((ms) => !Number.isNaN(ms))
        .toSorted((a, b) => a - b);
      const at = (share: number) => round(quantile(delays, share), 1);
      return {
        events: delays.length,
        p50: at(0.5),
        p99: at(0.99),
        most: round(delays.at(-1) ?? 0, 1),
      };
    },
    close: () => redis.disconnect(),
  };
}

export type Load = Awaited<ReturnType<typeof openLoad>>;
