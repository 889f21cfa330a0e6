import { chmodSync, mkdirSync, openSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";

import { connect, type RawDb } from "../../../db/client.ts";
import { migrate } from "../../../db/migrate.ts";
import {
  type RunningStore,
  startEmbeddedPostgres,
} from "../../../scripts/demo/stores/embedded-postgres.ts";
import { processesIn, signal, waitUntil } from "../../../scripts/demo/stores/processes.ts";
import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { hitStatements } from "../../support/hit-statements.ts";
import { startPgBouncer } from "../../support/processes/pgbouncer.ts";
import { mountSmallDisk, type SmallDisk } from "./small-disk.ts";
import { proxyBefore, type TcpProxy } from "../../support/network/tcp-proxy.ts";

const GONE_WITHIN_MS = 10_000;

/** A Postgres with durable settings and functions that inject faults. */
export interface ChaosPostgres {
  /** The URL past the proxy, for the verdict and for the setup. */
  readonly url: string;
  readonly proxiedUrl: string;
  readonly proxy: TcpProxy;
  /** Kills the postmaster and all its children at once, as a power failure does, and starts it again. */
  kill(downMs: number): Promise<void>;
  /** Stops without a checkpoint, so that the next start recovers as after a crash. */
  immediate(downMs: number): Promise<void>;
  /** Stops all its processes with SIGSTOP for this time. */
  pause(ms: number): Promise<void>;
  /** Terminates the product's sessions. */
  terminate(): Promise<void>;
  /** Locks a subscription's row for this time, as a slow transaction does. */
  lockRow(ms: number): Promise<void>;
  /** Cancels statements of the product, some after their first rows, and terminates sessions. */
  hitStatements(ms: number): Promise<void>;
  /** Changes the type of a column that many statements return for this time, so that prepared statements fail. */
  retypeColumn(ms: number): Promise<void>;
  /** Fills the disk for this time; undefined if the server has no separate disk. */
  readonly fillDisk: ((ms: number) => Promise<void>) | undefined;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  /** Whether PgBouncer runs between the product and the database. */
  readonly hasPooler: boolean;
  /** Whether the data are on a small disk that can be filled, if this machine allows it. */
  readonly hasSmallDisk: boolean;
}

/** A server with all its processes, which can be restarted after each end. */
class Server {
  readonly #data: string;
  readonly #start: () => Promise<RunningStore>;
  #running: RunningStore;

  constructor(data: string, start: () => Promise<RunningStore>, running: RunningStore) {
    this.#data = data;
    this.#start = start;
    this.#running = running;
  }

  get url(): string {
    return this.#running.url;
  }

  get isGone(): boolean {
    return processesIn(this.#data).length === 0;
  }

  signalAll(name: NodeJS.Signals): void {
    for (const pid of processesIn(this.#data)) signal(pid, name);
  }

  signalPostmaster(name: NodeJS.Signals): void {
    const [pid] = readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n");
    signal(Number(pid), name);
  }

  /** Waits until the server is gone and starts it after the down time. */
  async again(downMs: number): Promise<void> {
    await waitUntil(() => this.isGone, GONE_WITHIN_MS);
    await this.#running.exited;
    await Bun.sleep(downMs);
    this.#running = await this.#start();
  }

  stop(): Promise<void> {
    return this.#running.stop();
  }
}

async function startServer(folder: string, home: string): Promise<Server> {
  const log = openSync(join(folder, "postgres.log"), "a");
  const port = await freePort();
  const start = () => startEmbeddedPostgres({ folder: home, port, durable: true, log });
  const running = await start();
  const server = new Server(join(realpathSync(home), "data"), start, running);
  // The verdict uses the order of commits; this setting needs a restart.
  await withDb(server.url, (db) => db.sql`alter system set track_commit_timestamp = on`);
  await server.stop();
  await server.again(0);
  await migrate(server.url);
  return server;
}

export async function startPostgres(
  folder: string,
  { hasPooler, hasSmallDisk }: PostgresOptions,
): Promise<ChaosPostgres> {
  const home = join(folder, "postgres");
  mkdirSync(home);
  const disk = hasSmallDisk ? mountSmallDisk(home) : undefined;
  chmodSync(home, 0o711);
  const server = await startServer(folder, home);
  const { url } = server;
  const stop = async () => {
    await server.stop();
    disk?.stop();
  };
  const pooler = hasPooler
    ? await startPgBouncer(url, { mode: "transaction", poolSize: 40 }).catch(
        async (error: unknown) => {
          await stop();
          throw error;
        },
      )
    : undefined;
  const proxy = await proxyBefore(pooler?.in(url) ?? url);
  return {
    url,
    proxiedUrl: proxy.in(url) + (pooler === undefined ? "" : "?prepare=false"),
    proxy,
    fillDisk: disk && ((ms) => fillDisk(disk, server, ms)),
    ...faultsOf(server),
    async stop() {
      proxy.stop();
      server.signalAll("SIGCONT");
      await pooler?.stop();
      await stop();
    },
  };
}

async function fillDisk(disk: SmallDisk, server: Server, ms: number): Promise<void> {
  await disk.fill(ms);
  // The server may have ended because it had no space for its WAL.
  if (server.isGone) await server.again(0);
}

function faultsOf(
  server: Server,
): Omit<ChaosPostgres, "url" | "proxiedUrl" | "proxy" | "fillDisk" | "stop"> {
  return {
    async kill(downMs) {
      server.signalAll("SIGKILL");
      await server.again(downMs);
    },
    async immediate(downMs) {
      server.signalPostmaster("SIGQUIT");
      await server.again(downMs);
    },
    async pause(ms) {
      server.signalAll("SIGSTOP");
      await Bun.sleep(ms);
      server.signalAll("SIGCONT");
    },
    hitStatements: (ms) => withDb(server.url, (db) => hitStatements(db, ms)),
    retypeColumn: (ms) => withDb(server.url, (db) => retypeColumn(db, ms)),
    lockRow: (ms) => withDb(server.url, (db) => lockRow(db, ms)),
    async terminate() {
      await withDb(
        server.url,
        (db) => db.sql`
          select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'reviewrelay-%'`,
      );
    },
  };
}

async function lockRow(db: RawDb, ms: number): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx.sql<{ id: string }[]>`
      select subscription_id as id from outbox_sequences order by random() limit 1`;
    const id = row?.id ?? "";
    await tx.sql`select from outbox_sequences where subscription_id = ${id} for update`;
    await tx.sql`select from webhook_subscriptions where id = ${id} for update`;
    await Bun.sleep(ms);
  });
}

async function retypeColumn(db: RawDb, ms: number): Promise<void> {
  await db.sql`alter table webhook_subscriptions alter column shard type integer`;
  await Bun.sleep(ms);
  await db.sql`alter table webhook_subscriptions alter column shard type smallint`;
}

async function withDb<T>(url: string, work: (db: RawDb) => Promise<T>): Promise<T> {
  const db = connect(url, { max: 1, name: "chaos" });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}
