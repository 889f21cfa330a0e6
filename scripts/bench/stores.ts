// Provides the stores of a run: embedded ones with durable storage, or a new database on the given servers.
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";

import { connect, type RawDb } from "../../db/client.ts";
import { startStores, type Stores } from "../demo/stores/keep.ts";
import { installPostgres, postgresMajor } from "../demo/stores/postgres-versions.ts";
import { processesIn } from "../demo/stores/processes.ts";
import { cpuMsOf, postmasterOf } from "./cpu.ts";

export interface BenchStores {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly redisPrefix: string;
  readonly folder: string;
  readonly db: RawDb;
  /** A description with the server's version. */
  readonly kind: string;
  readonly postmaster: number | undefined;
  readonly redisCpu: () => number;
  /** Returns the number of commands that Redis has processed, including this one. */
  readonly redisCommands: () => Promise<number>;
  stop(): Promise<void>;
}

/** Opens the stores. `settings` apply to an embedded PostgreSQL. */
export async function openStores(
  version: string | undefined,
  settings: string[],
): Promise<BenchStores> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-bench-"));
  // If this process runs as root, PostgreSQL runs as another user, which must be able to pass through this folder.
  chmodSync(folder, 0o711);
  const given = { database: process.env["DATABASE_URL"], redis: process.env["REDIS_URL"] };
  const native = installPostgres(postgresMajor(version));
  // The keeper runs even if it starts no store, because it deletes the folder when this process dies.
  const embedded = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: given.database ? undefined : { durable: true, native, settings },
    redis: !given.redis,
  });
  try {
    return await reach(embedded, folder, given);
  } catch (error) {
    await embedded.stop();
    throw error;
  }
}

async function reach(
  embedded: Stores,
  folder: string,
  given: { database: string | undefined; redis: string | undefined },
): Promise<BenchStores> {
  const own = `reviewrelay_bench_${randomBytes(4).toString("hex")}`;
  const serverUrl = given.database || (embedded.databaseUrl ?? "");
  const admin = connect(serverUrl, { max: 1, name: "bench-admin" });
  await admin.sql.unsafe(`create database "${own}"`);
  const url = new URL(serverUrl);
  url.pathname = `/${own}`;
  const db = connect(url.href, { max: 4, name: "bench" });
  const [row] = await db.sql<{ version: string; pid: number }[]>`
    select current_setting('server_version') as version, pg_backend_pid() as pid`;
  const native = processesIn(join(folder, "redis"))[0];
  const redisUrl = given.redis || (embedded.redisUrl ?? "");
  const redis = new Redis(redisUrl);
  return {
    databaseUrl: url.href,
    redisUrl,
    redisPrefix: `${own}:`,
    folder,
    db,
    kind: `PostgreSQL ${row?.version.split(" ")[0]} ${given.database ? "as given" : "embedded"}, Redis ${given.redis ? "as given" : "embedded"}`,
    postmaster: postmasterOf(row?.pid),
    redisCpu: () => cpuMsOf(given.redis ? undefined : (native ?? embedded.pid)),
    async redisCommands() {
      const stats = await redis.info("stats");
      return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]);
    },
    async stop() {
      redis.disconnect();
      await db.close();
      if (given.database) await admin.sql.unsafe(`drop database "${own}" with (force)`);
      await admin.close();
      await embedded.stop();
    },
  };
}
