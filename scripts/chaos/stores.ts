import { chmodSync, mkdirSync, openSync, readFileSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

import { Redis } from "ioredis";

import { connect, type RawDb } from "../../db/client.ts";
import { migrate } from "../../db/migrate.ts";
import { type RunningStore, startEmbeddedPostgres } from "../demo/stores/embedded-postgres.ts";
import { startEmbeddedRedis } from "../demo/stores/embedded-redis.ts";
import { processesIn, signal, waitUntil } from "../demo/stores/processes.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

const GONE_WITHIN_MS = 10_000;

/** A Postgres with durable settings, which can be treated badly. */
export interface ChaosPostgres {
  /** Past the proxy: for the judge, and for setting things up. */
  readonly url: string;
  readonly proxiedUrl: string;
  readonly proxy: TcpProxy;
  /** The postmaster and all its children at once, as when a machine loses power; then it is started again. */
  kill(downMs: number): Promise<void>;
  /** Stops without a checkpoint, so that it recovers as after a crash. */
  immediate(downMs: number): Promise<void>;
  /** All its processes stand still. */
  pause(ms: number): Promise<void>;
  /** Ends the sessions of the product. */
  terminate(): Promise<void>;
  stop(): Promise<void>;
}

export async function startPostgres(folder: string): Promise<ChaosPostgres> {
  const home = join(folder, "postgres");
  mkdirSync(home);
  chmodSync(home, 0o711);
  const log = openSync(join(folder, "postgres.log"), "a");
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ folder: home, port, durable: true, log });
  let server: RunningStore = await start();
  const { url } = server;
  const data = join(realpathSync(home), "data");
  // The order of the commits is what the judge goes by; the setting takes a new start.
  await withDb(url, (db) => db.sql`alter system set track_commit_timestamp = on`);
  await server.stop();
  server = await start();
  await migrate(url);
  const proxy = await startTcpProxy(port);
  const all = (name: NodeJS.Signals) => {
    for (const pid of processesIn(data)) signal(pid, name);
  };
  const again = async (downMs: number) => {
    await waitUntil(() => processesIn(data).length === 0, GONE_WITHIN_MS);
    await server.exited;
    await Bun.sleep(downMs);
    server = await start();
  };
  return {
    url,
    proxiedUrl: withPort(url, proxy.port),
    proxy,
    async kill(downMs) {
      all("SIGKILL");
      await again(downMs);
    },
    async immediate(downMs) {
      signal(postmasterOf(data), "SIGQUIT");
      await again(downMs);
    },
    async pause(ms) {
      all("SIGSTOP");
      await Bun.sleep(ms);
      all("SIGCONT");
    },
    async terminate() {
      await withDb(
        url,
        (db) => db.sql`
          select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'reviewrelay-%'`,
      );
    },
    async stop() {
      proxy.stop();
      all("SIGCONT");
      await server.stop();
    },
  };
}

function postmasterOf(data: string): number {
  return Number(readFileSync(join(data, "postmaster.pid"), "utf8").split("\n")[0]);
}

export async function withDb<T>(url: string, work: (db: RawDb) => Promise<T>): Promise<T> {
  const db = connect(url, { max: 1, name: "chaos" });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

export interface ChaosRedis {
  readonly proxiedUrl: string;
  readonly proxy: TcpProxy;
  /** It loses everything, and is away for a while. */
  kill(downMs: number): Promise<void>;
  flush(): Promise<void>;
  pause(ms: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(folder: string): Promise<ChaosRedis> {
  const home = join(folder, "redis");
  mkdirSync(home);
  const log = openSync(join(folder, "redis.log"), "a");
  const [port, password] = [await freePort(), crypto.randomUUID()];
  const start = () => startEmbeddedRedis({ folder: home, port, password, log });
  let server = await start();
  const { url } = server;
  const proxy = await startTcpProxy(port);
  return {
    proxiedUrl: withPort(url, proxy.port),
    proxy,
    async kill(downMs) {
      await server.stop();
      await Bun.sleep(downMs);
      server = await start();
    },
    flush: () => tell(url, ["flushall"]),
    pause: (ms) => tell(url, ["client", "pause", String(Math.round(ms)), "all"]),
    async stop() {
      proxy.stop();
      await server.stop();
    },
  };
}

/** One command; a server that is away at the moment is no error. */
async function tell(url: string, [command = "", ...args]: readonly string[]): Promise<void> {
  const client = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  client.on("error", () => undefined);
  await client
    .connect()
    .then(() => client.call(command, ...args))
    .catch(() => undefined);
  client.disconnect();
}

function withPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        resolve(typeof address === "object" && address !== null ? address.port : 0),
      );
    });
  });
}
