// The setup of all benchmarks: arguments, durable stores, a migrated database, processes of the product from any
// checkout, the CPU time and memory of processes, and the file with the result.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { Redis } from "ioredis";

import { connect, type RawDb } from "../../db/client.ts";
import { freePort, startStores, temporaryFolder } from "../demo/stores/keep.ts";
import { installPostgres, postgresMajor } from "../demo/stores/postgres-versions.ts";
import { hasEnded, processesIn, until } from "../demo/stores/processes.ts";
import { ROOT } from "../install/install.ts";

type Defaults = Readonly<Record<string, number | string>>;

/** An error for which scripts/bench.ts exits as for the errors of `parseArgs`. */
export function wrongUsage(message: string): Error {
  return Object.assign(new Error(message), { code: "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" });
}

export function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (text !== "" && Number.isFinite(value) && value >= 0) return value;
  throw wrongUsage(`${name} must be a number, not ${text}`);
}

/**
 * Reads the options of a benchmark and `--tree`, the checkout that runs. An option whose default is a number must be a
 * number. Other arguments must be one of `measurements`.
 */
export function readArguments<D extends Defaults>(
  defaults: D,
  measurements: readonly string[] = [],
) {
  const all = Object.entries({ tree: ROOT, ...defaults });
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: Object.fromEntries(all.map(([name]) => [name, { type: "string" as const }])),
  });
  const unknown = positionals.filter((one) => !measurements.includes(one));
  if (unknown.length > 0) throw wrongUsage(`Unknown measurement: ${unknown.join(", ")}`);
  const read = all.map(([name, usual]) => {
    const text = String(values[name] ?? usual);
    return [name, typeof usual === "number" ? numberOf(`--${name}`, text) : text] as const;
  });
  const options = Object.fromEntries(read) as { readonly tree: string } & {
    readonly [K in keyof D]: D[K] extends number ? number : string;
  };
  return { ...options, tree: resolve(options.tree), measurements: positionals };
}

/** Returns the `q` quantile of the values, for `q` from 0 to 1. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}

export function round(value: number, digits = 0): number {
  return Number(value.toFixed(digits));
}

interface RigOptions {
  /** The checkout whose migrations and processes run; by default this one. */
  readonly tree?: string;
  /** The major version of the embedded PostgreSQL. */
  readonly postgres?: string;
  /** Settings of the embedded PostgreSQL. */
  readonly settings?: string[];
  /** Settings of the product. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Rig {
  readonly stores: Awaited<ReturnType<typeof openStores>>;
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
export async function withRig<T>(options: RigOptions, work: (rig: Rig) => Promise<T>): Promise<T> {
  const { tree = ROOT } = options;
  const ends: (() => unknown)[] = [];
  const atEnd = (end: () => unknown) => void ends.push(end);
  try {
    const stores = await openStores(options, atEnd);
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
      ...options.env,
    };
    // Run by its name in package.json, because the file may be at another path in other checkouts.
    const migrated = spawnSync(process.execPath, ["run", "migrate"], {
      cwd: tree,
      env,
      encoding: "utf8",
    });
    if (migrated.status !== 0) throw new Error(`${migrated.stdout}${migrated.stderr}`);
    const start: Rig["start"] = async (role, own = {}) => {
      const log = openSync(join(stores.folder, `${role}.log`), "a", 0o600);
      // Detached, so that Ctrl-C reaches only this process.
      const child = spawn(process.execPath, [MAIN[role], role], {
        cwd: tree,
        env: { ...env, ...own },
        detached: true,
        stdio: ["ignore", log, "inherit"],
      });
      closeSync(log);
      atEnd(() => endInOrder(child));
      await until(`the ${role} is ready`, () => isReady(role, { root, db: stores.db }));
      return child;
    };
    return await work({ stores, db: stores.db, masterKey, root, start, atEnd });
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

/** Opens embedded stores with durable storage, or a new database and a prefix of its own on the given servers. */
async function openStores({ postgres, settings = [] }: RigOptions, atEnd: Rig["atEnd"]) {
  const folder = temporaryFolder("bench");
  const given = { database: process.env["DATABASE_URL"], redis: process.env["REDIS_URL"] };
  const native = installPostgres(postgresMajor(postgres));
  // The keeper runs even if it starts no store, because it deletes the folder when this process dies.
  const embedded = await startStores({
    folder,
    temporary: true,
    logFile: join(folder, "stores.log"),
    postgres: given.database ? undefined : { durable: true, native, settings },
    redis: !given.redis,
  });
  atEnd(() => embedded.stop());
  const own = `reviewrelay_bench_${randomBytes(4).toString("hex")}`;
  const url = new URL(given.database || (embedded.databaseUrl ?? ""));
  const admin = connect(url.href, { max: 1, name: "bench-admin" });
  atEnd(() => admin.close());
  await admin.sql.unsafe(`create database "${own}"`);
  if (given.database) atEnd(() => admin.sql.unsafe(`drop database "${own}" with (force)`));
  url.pathname = `/${own}`;
  const db = connect(url.href, { max: 4, name: "bench" });
  atEnd(() => db.close());
  const [row] = await db.sql<{ version: string; pid: number }[]>`
    select current_setting('server_version') as version, pg_backend_pid() as pid`;
  const redisPid = given.redis
    ? undefined
    : (processesIn(join(folder, "redis"))[0] ?? embedded.pid);
  const redisUrl = given.redis || (embedded.redisUrl ?? "");
  const redis = new Redis(redisUrl);
  atEnd(() => redis.disconnect());
  return {
    databaseUrl: url.href,
    redisUrl,
    redisPrefix: `${own}:`,
    folder,
    db,
    /** A description with the server's version. */
    kind: `PostgreSQL ${row?.version.split(" ")[0]} ${given.database ? "as given" : "embedded"}, Redis ${given.redis ? "as given" : "embedded"}`,
    postmaster: postmasterOf(row?.pid),
    redisPid,
    /** Returns the number of commands that Redis has processed, including this one. */
    async redisCommands() {
      const stats = await redis.info("stats");
      return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1]);
    },
  };
}

async function isReady(
  role: keyof typeof MAIN,
  { root, db }: Pick<Rig, "root" | "db">,
): Promise<boolean> {
  if (role === "api") return (await fetch(`${root}/readyz`).catch(() => undefined))?.ok === true;
  const free = await db.sql`select from shards where dispatcher_id is null limit 1`;
  return free.length === 0;
}

const STOPS_WITHIN_MS = 20_000;

/** Sends SIGTERM, waits for the process to end, and kills it after 20 s. */
export async function endInOrder(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const gone = new Promise<void>((done) => child.once("exit", () => done()));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOPS_WITHIN_MS);
  await gone;
  clearTimeout(late);
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

const TICKS_PER_S = 100;

/** Positions of the fields of /proc/<pid>/stat after the name. */
const PARENT = 1;
const OWN = [11, 12] as const;
const CHILDREN = [13, 14] as const;

/** Reads a file of /proc; returns "" if the process has ended, and on systems without /proc. */
function procOf(pid: number | string | undefined, file: "stat" | "status"): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

function statOf(pid: number | string | undefined): string[] {
  return procOf(pid, "stat").split(") ")[1]?.split(" ") ?? [];
}

function sum(fields: readonly string[], places: readonly number[]): number {
  const ticks = places.reduce((all, place) => all + Number(fields[place] ?? Number.NaN), 0);
  return (ticks * 1_000) / TICKS_PER_S;
}

/** Returns the user and system time of a process in ms since its start; NaN if it is unknown. */
export function cpuMsOf(pid: number | undefined): number {
  return sum(statOf(pid), OWN);
}

/** Returns the CPU time of a server and all its backends, including ended ones. */
export function cpuMsOfTree(root: number | undefined): number {
  if (root === undefined) return Number.NaN;
  let total = sum(statOf(root), [...OWN, ...CHILDREN]);
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    const fields = statOf(name);
    // The process may have ended meanwhile.
    if (Number(fields[PARENT]) === root) total += sum(fields, [...OWN, ...CHILDREN]);
  }
  return total;
}

/** Returns the process id of a backend's postmaster; undefined if the server does not run on this machine. */
function postmasterOf(backend: number | undefined): number | undefined {
  return procOf(backend, "stat").includes("(postgres) ")
    ? Number(statOf(backend)[PARENT])
    : undefined;
}

/** Returns the resident memory of a process in bytes; NaN if it is unknown. */
export function memoryOf(pid: number | undefined): number {
  const [, kb] = /VmRSS:\s+(\d+) kB/.exec(procOf(pid, "status")) ?? [];
  return Number(kb) * 1024;
}
