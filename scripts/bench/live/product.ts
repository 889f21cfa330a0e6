// The product under load: the API and a dispatcher of a checkout, started in the same way as by the start command.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";

import type { LiveStores } from "./stores.ts";

export interface Product {
  readonly root: string;
  readonly masterKey: Uint8Array;
  readonly api: ChildProcess;
  readonly dispatcher: ChildProcess;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 8_000;
/** Short retry delays, so that retries occur within a soak. */
const RETRY_DELAYS_MS = "2000,4000,8000";

export async function startProduct(
  tree: string,
  stores: LiveStores,
  soak: boolean,
): Promise<Product> {
  const key = randomBytes(32);
  const port = await freePort();
  const env = {
    PATH: process.env["PATH"] ?? "",
    DATABASE_URL: stores.databaseUrl,
    REDIS_URL: stores.redisUrl,
    REDIS_PREFIX: stores.redisPrefix,
    MASTER_KEY: key.toString("base64"),
    HOST: "127.0.0.1",
    PORT: String(port),
    SERVER_ROOT: `http://127.0.0.1:${port}`,
    WEBHOOK_ALLOW_HTTP: "1",
    WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8,::1/128",
    // The part watches this parent and ends when it is gone.
    PARENT_PID: String(process.pid),
    ...(soak && { RETRY_DELAYS_MS }),
  };
  const migrated = spawnSync(process.execPath, ["scripts/migrate.ts"], {
    cwd: tree,
    env,
    encoding: "utf8",
  });
  if (migrated.status !== 0) throw new Error(`${migrated.stdout}${migrated.stderr}`);
  const launch = (script: string, role: string) => {
    const log = openSync(join(stores.folder, `${role}.log`), "a", 0o600);
    // Detached, so that Ctrl-C reaches only this process.
    const child = spawn(process.execPath, [script, role], {
      cwd: tree,
      env,
      detached: true,
      stdio: ["ignore", log, "inherit"],
    });
    closeSync(log);
    return child;
  };
  const api = launch("src/main.ts", "api");
  const dispatcher = launch("dispatcher/main.ts", "dispatcher");
  const stop = async () => {
    await Promise.all([api, dispatcher].map(end));
  };
  try {
    await ready(env.SERVER_ROOT, stores);
  } catch (error) {
    await stop();
    throw error;
  }
  return { root: env.SERVER_ROOT, masterKey: key, api, dispatcher, stop };
}

async function ready(root: string, { db }: LiveStores): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  while (performance.now() < until) {
    const answer = await fetch(`${root}/readyz`).catch(() => undefined);
    const [row] = await db.sql<{ free: number }[]>`
      select count(*)::int as free from shards where dispatcher_id is null`;
    if (answer?.ok === true && row?.free === 0) return;
    await Bun.sleep(100);
  }
  throw new Error(`The product was not ready within ${READY_WITHIN_MS} ms.`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_WITHIN_MS);
  await gone;
  clearTimeout(late);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        resolve(typeof address === "object" && address !== null ? address.port : 0),
      );
    });
  });
}
