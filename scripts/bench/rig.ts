// The setup of all benchmarks: durable stores, a migrated database, and processes of the product from any checkout.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { freePort } from "../demo/stores/keep.ts";
import type { RawDb } from "../../db/client.ts";
import { ROOT } from "../install/install.ts";
import { endInOrder } from "./end.ts";
import { openStores, type BenchStores } from "./stores.ts";

interface RigOptions {
  /** The checkout whose migrations and processes run; by default this one. */
  readonly tree?: string;
  /** The executable `reviewrelay-server`, whose migrations and processes run instead. */
  readonly executable?: string | undefined;
  /** The major version of the embedded PostgreSQL. */
  readonly postgres?: string;
  /** Settings of the embedded PostgreSQL. */
  readonly settings?: string[];
  /** Settings of the product. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Rig {
  readonly stores: BenchStores;
  readonly db: RawDb;
  readonly masterKey: Uint8Array;
  /** The root URL of the API. */
  readonly root: string;
  /** Starts a process of the product and waits until it is ready. */
  start(role: keyof typeof MAIN, env?: Readonly<Record<string, string>>): Promise<ChildProcess>;
  /** Registers `end` to run when `work` has finished. */
  atEnd(end: () => unknown): void;
}

const MAIN = { api: "src/main.ts", dispatcher: "dispatcher/main.ts" };

/** Starts the stores, runs `work`, and stops everything even if `work` throws. */
export async function withRig<T>(
  { tree = ROOT, executable, postgres, settings = [], env: more = {} }: RigOptions,
  work: (rig: Rig) => Promise<T>,
): Promise<T> {
  const ends: (() => unknown)[] = [];
  try {
    const stores = await openStores(postgres, settings);
    ends.push(() => stores.stop());
    const masterKey = randomBytes(32);
    const port = await freePort();
    const root = `http://127.0.0.1:${port}`;
    const env = {
      PATH: process.env["PATH"] ?? "",
      DATABASE_URL: stores.databaseUrl,
      REDIS_URL: stores.redisUrl,
      REDIS_PREFIX: stores.redisPrefix,
      MASTER_KEY: masterKey.toString("base64"),
      HOST: "127.0.0.1",
      PORT: String(port),
      SERVER_ROOT: root,
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8,::1/128",
      DRAIN_DELAY_MS: "0",
      // A process watches this parent and ends when the parent has ended.
      PARENT_PID: String(process.pid),
      ...more,
    };
    const commandOf = (name: string, file: string): [string, string[]] =>
      executable === undefined ? [process.execPath, [file, name]] : [executable, [name]];
    // Run by its name in package.json, because the file may be at another path in other checkouts.
    const migrated = spawnSync(...commandOf("migrate", "run"), {
      cwd: tree,
      env,
      encoding: "utf8",
    });
    if (migrated.status !== 0) throw new Error(`${migrated.stdout}${migrated.stderr}`);
    const start: Rig["start"] = async (role, own = {}) => {
      const log = openSync(join(stores.folder, `${role}.log`), "a", 0o600);
      // Detached, so that Ctrl-C reaches only this process.
      const child = spawn(...commandOf(role, MAIN[role]), {
        cwd: tree,
        env: { ...env, ...own },
        detached: true,
        stdio: ["ignore", log, "inherit"],
      });
      closeSync(log);
      ends.push(() => endInOrder(child));
      await until(`the ${role} is ready`, () => isReady(role, { root, db: stores.db }), 100);
      return child;
    };
    const atEnd = (end: () => unknown) => void ends.push(end);
    return await work({ stores, db: stores.db, masterKey, root, start, atEnd });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function isReady(
  role: keyof typeof MAIN,
  { root, db }: Pick<Rig, "root" | "db">,
): Promise<boolean> {
  if (role === "api") return (await fetch(`${root}/readyz`).catch(() => undefined))?.ok === true;
  const free = await db.sql`select from shards where dispatcher_id is null limit 1`;
  return free.length === 0;
}

/** Waits until the condition holds. Throws after two minutes. */
export async function until(
  what: string,
  holds: () => Promise<boolean>,
  everyMs = 50,
): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Not within two minutes: ${what}`);
    await Bun.sleep(everyMs);
  }
}

export function commitOf(tree: string): string {
  return spawnSync("git", ["describe", "--always", "--dirty"], {
    cwd: tree,
    encoding: "utf8",
  }).stdout.trim();
}

export function writeResult(name: string, result: unknown): void {
  const folder = join(ROOT, "bench-results");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(path, `${JSON.stringify(result, null, 2)}\n`);
  console.log(`\nWritten to ${path}`);
}
