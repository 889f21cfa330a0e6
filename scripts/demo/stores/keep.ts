// The parent's side of the keeper: starts it and provides the URLs of the stores.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, realpathSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The order that the parent writes to the keeper's standard input. */
export interface KeeperOrder {
  folder: string;
  temporary: boolean;
  postgres?: PostgresWanted & { port: number };
  redis?: { port: number; password: string };
}

/** The response that the keeper writes once to its standard output. */
export interface KeeperAnswer {
  databaseUrl?: string | undefined;
  redisUrl?: string | undefined;
  error?: string;
}

export interface StoresWanted {
  /** An existing folder that no other start uses. */
  folder: string;
  /** The log of both stores and the keeper. */
  logFile: string;
  /** Whether the keeper deletes the folder with all its content when it ends. */
  temporary?: boolean;
  postgres?: PostgresWanted | undefined;
  redis?: boolean | undefined;
}

interface PostgresWanted {
  durable: boolean;
  /** The folder with the programs of another server version than the demo's. */
  native?: string | undefined;
  /** Additional settings, as `name=value`. */
  settings?: readonly string[] | undefined;
}

export interface Stores {
  /** The pid of the current keeper. */
  readonly pid: number;
  databaseUrl: string | undefined;
  redisUrl: string | undefined;
  /** Resolves when the keeper has ended, whether requested or not. */
  readonly exited: Promise<void>;
  /** Starts the same stores at the same addresses again, after the keeper ended unexpectedly. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Creates a folder for temporary stores. */
export function temporaryFolder(name: string): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `reviewrelay-${name}-`)));
  // If this process runs as root, PostgreSQL runs as another user, which must be able to pass through this folder.
  chmodSync(folder, 0o711);
  return folder;
}

/** Number of tries, because another process may take a free port before the store listens on it. */
const TRIES = 3;

export async function startStores(wanted: StoresWanted): Promise<Stores> {
  for (let attempt = 1; ; attempt++) {
    const order: KeeperOrder = {
      folder: wanted.folder,
      temporary: wanted.temporary ?? false,
      ...(wanted.postgres && { postgres: { port: await freePort(), ...wanted.postgres } }),
      ...(wanted.redis && {
        redis: { port: await freePort(), password: randomBytes(24).toString("hex") },
      }),
    };
    try {
      return await startKeeper(order, wanted.logFile);
    } catch (error) {
      if (attempt === TRIES || !isPortTaken(error)) throw error;
    }
  }
}

async function startKeeper(order: KeeperOrder, logFile: string): Promise<Stores> {
  let keeper = launch(order, logFile);
  let stopped = false;
  const { databaseUrl, redisUrl } = await keeper.answer;
  return {
    databaseUrl,
    redisUrl,
    get pid() {
      return keeper.process.pid ?? -1;
    },
    get exited() {
      return keeper.exited;
    },
    async restart() {
      await keeper.exited;
      if (stopped) return;
      keeper = launch(order, logFile);
      await keeper.answer;
    },
    async stop() {
      stopped = true;
      keeper.process.stdin?.end();
      await keeper.exited;
    },
  };
}

function launch(order: KeeperOrder, logFile: string) {
  const log = openSync(logFile, "a", 0o600);
  const keeper = spawn(process.execPath, [join(import.meta.dirname, "keeper.ts")], {
    cwd: join(import.meta.dirname, "../../.."),
    detached: true,
    stdio: ["pipe", "pipe", log],
  });
  closeSync(log);
  const exited = new Promise<void>((resolve) => keeper.once("exit", () => resolve()));
  // Write errors after the keeper has ended are ignored, because `exited` reports its end.
  keeper.stdin?.on("error", () => undefined);
  keeper.stdin?.write(`${JSON.stringify(order)}\n`);
  return { process: keeper, exited, answer: readAnswer(keeper, logFile) };
}

function readAnswer(keeper: ChildProcess, logFile: string): Promise<Omit<KeeperAnswer, "error">> {
  return new Promise((resolve, reject) => {
    let text = "";
    let answered = false;
    const fail = (reason: string) => {
      if (!answered) reject(new Error(`${reason}\n${tail(logFile)}\n(more in ${logFile})`));
      answered = true;
    };
    keeper.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (!text.endsWith("\n")) return;
      const { error, ...urls } = JSON.parse(text) as KeeperAnswer;
      if (error !== undefined) fail(error);
      answered = true;
      resolve(urls);
    });
    keeper.once("error", (error) => fail(`the stores' keeper did not start: ${error.message}`));
    keeper.once("close", (status) => fail(`the stores' keeper ended with status ${status}`));
  });
}

function tail(logFile: string): string {
  return readFileSync(logFile, "utf8").trimEnd().split("\n").slice(-5).join("\n");
}

function isPortTaken(error: unknown): boolean {
  return /address already in use|EADDRINUSE/i.test(String(error));
}

/**
 * Ports below the range that Linux uses for outgoing connections. They are divided into shares for this many processes.
 */
const FIRST_PORT = 20_000;
const PORTS_EACH = 199;
const SHARES = 64;
/** The start is random, so that two processes with the same share begin at different ports. */
let taken = Math.floor(Math.random() * PORTS_EACH);

/**
 * Returns a currently unused port of this process's share. Outgoing connections and other processes do not take it
 * before the caller's server listens. Only a process with the same share might, in rare cases.
 */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < PORTS_EACH; tried++) {
    const port = FIRST_PORT + (process.pid % SHARES) * PORTS_EACH + (taken++ % PORTS_EACH);
    if (await isFree(port)) return port;
  }
  throw new Error("There is no free port.");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
