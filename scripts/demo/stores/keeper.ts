// The process that owns the embedded stores. Its standard input is a pipe from its parent. When the pipe closes, the
// keeper stops the stores. This happens on request, or when the parent dies, even by kill -9. The keeper is detached,
// so that Ctrl-C at the terminal does not reach it.
import { existsSync, mkdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";

import { type RunningStore, startEmbeddedPostgres } from "./embedded-postgres.ts";
import { startEmbeddedRedis } from "./embedded-redis.ts";
import type { KeeperAnswer, KeeperOrder } from "./keep.ts";
import { acquireLock } from "./lock.ts";
import { processesUsing, signal, waitUntil } from "./processes.ts";

// Time in ms to wait for the lock, because an earlier keeper whose parent was killed may still be stopping its stores.
const LOCK_WITHIN_MS = 20_000;
// Standard error is the log file that keep.ts opened.
const LOG = 2;

let order: KeeperOrder | undefined;
const running: RunningStore[] = [];
/** Settles when every store has started or failed. The stop waits for it, so that no store starts afterwards. */
let begun: Promise<unknown> = Promise.resolve();
let stopping: Promise<never> | undefined;

function stopAll(status: number): Promise<never> {
  stopping ??= begun
    .then(() => Promise.all(running.map((store) => store.stop())))
    .then(removeIfTemporary)
    .then(
      () => process.exit(status),
      (error: unknown) => {
        console.error("keeper: could not stop a store:", error);
        process.exit(1);
      },
    );
  return stopping;
}

function removeIfTemporary(): void {
  if (order?.temporary !== true) return;
  // Child processes of a killed parent may still run.
  for (const pid of processesUsing(order.folder)) signal(pid, "SIGKILL");
  // Deletes both paths, because the folder may contain a link to data in another place.
  for (const path of [realpathIfThere(join(order.folder, "postgres")), order.folder]) {
    rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }
}

function realpathIfThere(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

async function watch(starting: Promise<RunningStore>): Promise<RunningStore> {
  const store = await starting;
  running.push(store);
  // One store is useless without the other, so the keeper ends, and the parent restarts both.
  void store.exited.then(() => stopAll(1));
  return store;
}

async function keep(): Promise<KeeperAnswer> {
  order = await readOrder();
  const folder = realpathSync(order.folder);
  await lock(join(folder, "stores.lock"));
  const postgres =
    order.postgres &&
    watch(startEmbeddedPostgres({ ...order.postgres, folder: join(folder, "postgres"), log: LOG }));
  const redis =
    order.redis &&
    watch(startEmbeddedRedis({ ...order.redis, folder: makeFolder(folder, "redis"), log: LOG }));
  begun = Promise.allSettled([postgres, redis]);
  await begun;
  return { databaseUrl: (await postgres)?.url, redisUrl: (await redis)?.url };
}

async function lock(path: string): Promise<void> {
  let release: (() => void) | undefined;
  if (await waitUntil(() => (release ??= acquireLock(path)) !== undefined, LOCK_WITHIN_MS)) return;
  throw new Error(`the stores of ${path} belong to another process: stop that one first`);
}

function makeFolder(parent: string, name: string): string {
  const folder = join(parent, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Reads the order from the first line of standard input. The end of standard input means that the parent has ended. */
function readOrder(): Promise<KeeperOrder> {
  return new Promise((resolve) => {
    let text = "";
    process.stdin.setEncoding("utf8");
    process.stdin.on("data", (chunk) => {
      text += String(chunk);
      if (text.endsWith("\n")) resolve(JSON.parse(text) as KeeperOrder);
    });
    process.stdin.on("end", () => void stopAll(0));
    process.stdin.on("error", () => void stopAll(0));
  });
}

for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
  process.on(name, () => void stopAll(1));

let answer: KeeperAnswer;
try {
  answer = await keep();
} catch (error) {
  answer = { error: error instanceof Error ? error.message : String(error) };
}
process.stdout.write(`${JSON.stringify(answer)}\n`);
if (answer.error !== undefined) await stopAll(1);
