// Runs the PostgreSQL server of an npm package, which needs neither root nor a container nor a system package.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { type PostgresFiles, preparePostgresFiles } from "./postgres-files.ts";
import { commandLine, hasEnded, isAlive, processesIn, signal, waitUntil } from "./processes.ts";

export interface PostgresOptions {
  /** The folder of the database cluster. The caller has locked it against other starts. */
  folder: string;
  port: number;
  /** Whether data survive a crash of the machine. Tests set false, which is faster. */
  durable: boolean;
  /** The folder with the programs of another server version than the demo's. */
  native?: string | undefined;
  /** Additional settings, as `name=value`. */
  settings?: readonly string[] | undefined;
  /** File descriptor for the server's log. */
  log: number;
}

export interface RunningStore {
  url: string;
  /** Resolves when the server has ended, whether requested or not. */
  exited: Promise<void>;
  stop(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 4_000;
// The name of the superuser and of the database that every new server has.
const NAME = "postgres";
// The first version with a built-in locale provider.
const BUILTIN_LOCALE = 17;
const FAST = [
  "fsync=off",
  "full_page_writes=off",
  // Lets tests read in which order transactions were committed.
  "track_commit_timestamp=on",
];

export async function startEmbeddedPostgres(options: PostgresOptions): Promise<RunningStore> {
  const files = preparePostgresFiles(options.folder, options.native);
  const data = join(files.home, "data");
  await clearLeftovers(data);
  const password = await createCluster(files, data, options.durable);
  const settings = [
    "listen_addresses=127.0.0.1",
    `port=${options.port}`,
    "unix_socket_directories=",
    "max_connections=300",
    "timezone=UTC",
    "log_timezone=UTC",
    ...(options.durable ? [] : FAST),
    ...(options.settings ?? []),
  ];
  const server = spawn(
    join(files.programs, "postgres"),
    ["-D", data, ...settings.flatMap((setting) => ["-c", setting])],
    // Detached, so that Ctrl-C at the terminal reaches only this program, which then stops its server.
    {
      ...files.owner,
      ...childOptions(files),
      detached: true,
      stdio: ["ignore", options.log, options.log],
    },
  );
  const exited = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const stop = async () => {
    await stopServer(server);
    await exited;
  };
  if (
    !(await waitUntil(() => isReady(data) || hasEnded(server), READY_WITHIN_MS)) ||
    hasEnded(server)
  ) {
    await stop();
    throw new Error(`PostgreSQL did not start on port ${options.port}; its log says why`);
  }
  return { url: `postgres://${NAME}:${password}@127.0.0.1:${options.port}/${NAME}`, exited, stop };
}

function childOptions(files: PostgresFiles) {
  // The server gets a minimal environment, so that the user's PG* variables and loader settings do not affect it.
  return { cwd: files.home, env: { PATH: process.env.PATH ?? "", LC_ALL: "C", TZ: "UTC" } };
}

/** Creates the cluster if there is none, and returns the superuser's password. */
async function createCluster(
  files: PostgresFiles,
  data: string,
  durable: boolean,
): Promise<string> {
  const passwordFile = join(files.home, "password");
  if (existsSync(data)) return readFileSync(passwordFile, "utf8");
  const password = randomBytes(24).toString("hex");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (files.owner !== undefined) chownSync(passwordFile, files.owner.uid, files.owner.gid);
  // The cluster is created in a temporary folder, so that an interrupted initdb leaves no incomplete cluster. If an
  // earlier keeper was killed, its initdb may still be writing there, so it is killed, too.
  for (const pid of processesIn(files.home)) signal(pid, "SIGKILL");
  const partial = `${data}.partial`;
  rmSync(partial, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  await runInitdb(files, [
    `--pgdata=${partial}`,
    `--username=${NAME}`,
    `--pwfile=${passwordFile}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    ...locale(files.major),
    ...(durable ? [] : ["--no-sync"]),
  ]);
  renameSync(partial, data);
  return password;
}

/** Runs initdb asynchronously: it takes seconds on a slow machine, during which the other store starts. */
async function runInitdb(files: PostgresFiles, args: readonly string[]): Promise<void> {
  const initdb = spawn(join(files.programs, "initdb"), args, {
    ...files.owner,
    ...childOptions(files),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [initdb.stdout, initdb.stderr])
    stream.on("data", (chunk) => (said += String(chunk)));
  const status = await new Promise<number | null>((resolve) => {
    initdb.once("error", (error) => {
      said = error.message;
      resolve(null);
    });
    initdb.once("close", resolve);
  });
  if (status !== 0) throw new Error(`initdb failed: ${said.trim()}`);
}

/** Returns options for a locale with the same text order on every machine. */
function locale(major: number): string[] {
  if (major >= BUILTIN_LOCALE)
    return ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  // Older versions must use a locale of the system for case conversion beyond ASCII.
  return ["--locale=C", `--lc-ctype=${process.platform === "linux" ? "C.UTF-8" : "UTF-8"}`];
}

/**
 * Removes leftovers of a killed start, with which PostgreSQL would refuse to start: a server without its keeper,
 * backends that still use the shared memory, or a postmaster.pid whose pid now belongs to another program. The caller's
 * lock guarantees that they belong to no other start.
 */
async function clearLeftovers(data: string): Promise<void> {
  const pidFile = join(data, "postmaster.pid");
  if (!existsSync(pidFile)) return;
  const recorded = Number(readFileSync(pidFile, "utf8").split("\n")[0]);
  const leftovers = () => {
    const isServer = recorded > 1 && isAlive(recorded) && commandLine(recorded).includes(data);
    return [...new Set([...(isServer ? [recorded] : []), ...processesIn(data)])];
  };
  if (leftovers().includes(recorded)) {
    signal(recorded, "SIGINT");
    await waitUntil(() => leftovers().length === 0, STOP_WITHIN_MS);
  }
  for (const pid of leftovers()) signal(pid, "SIGKILL");
  if (!(await waitUntil(() => leftovers().length === 0, STOP_WITHIN_MS))) {
    throw new Error(`processes of an earlier start still use ${data}: ${leftovers().join(", ")}`);
  }
  rmSync(pidFile, { force: true });
}

/** Returns whether the server is ready. It writes its state to the eighth line of postmaster.pid. */
function isReady(data: string): boolean {
  try {
    const lines = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
    return lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

/** Stops the server. SIGINT ends sessions and shuts down cleanly; SIGTERM would wait for every client to disconnect. */
async function stopServer(server: ChildProcess): Promise<void> {
  for (const name of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    if (hasEnded(server)) return;
    server.kill(name);
    await waitUntil(() => hasEnded(server), STOP_WITHIN_MS);
  }
}
