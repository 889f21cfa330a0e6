// The processes of `bench fleet`: stores with a pooler before them, and as many parts of the product as are asked for.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connect, type RawDb } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { freePort } from "../chaos/addresses.ts";
import { findPooler, startPooler } from "../chaos/pooler.ts";
import { startStores } from "../demo/stores/keep.ts";
import { ROOT, startProcess, type Role, type Running } from "../proof/product.ts";
import { postgresCpuMs, startSink, type Sink } from "./rig.ts";

/** Processes that start at the same time. */
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
  /** In words, what stands between the processes and the database. */
  readonly before: string;
  /** User and system time of all processes of the database so far. */
  postgresCpuMs(): number | undefined;
  start(role: Role, count: number): Promise<Running[]>;
  /** Connections of a process to the database, or to the pooler before it. */
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

/** Of a process, to a port of this machine. */
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
    // It was closed meanwhile.
    return "";
  }
}
