// Keeps one part of the service running: starts it, starts it again when it dies, drains it at the end.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, closeSync, copyFileSync, openSync, statSync, truncateSync } from "node:fs";

import { EXIT_CONFIG } from "../../src/lib/config.ts";
import { commandLine, isAlive, signal, waitUntil } from "./stores/processes.ts";
import { ROOT } from "../install/install.ts";

export interface ChildSpec {
  /** What the screen calls it. */
  name: string;
  /** The script and its role, as they show in the process list. */
  command: [script: string, role: string];
  env: Record<string, string>;
  logFile: string;
}

interface ChildEvents {
  started(pid: number): void;
  /** The part died and is started again after `delayMs`. */
  died(how: string, delayMs: number): void;
  /** Its settings are wrong: it has said so, and starting it again cannot help. */
  refused(): void;
}

export interface Child {
  role: string;
  /** The part's process now; undefined between two lives. */
  pid(): number | undefined;
  /** Sends SIGTERM, and SIGKILL when the time is up. */
  stop(withinMs: number): Promise<void>;
  kill(): void;
}

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 4_000;
/** A part that lived this long is started again after the shortest delay. */
const SETTLED_MS = 30_000;
const LARGEST_LOG = 50_000_000;
const LOG_CHECK_MS = 60_000;

export function superviseChild(spec: ChildSpec, events: ChildEvents): Child {
  const stopping = new AbortController();
  let current: ChildProcess | undefined;

  async function live(): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (!stopping.signal.aborted) {
      const bornAt = performance.now();
      current = launch(spec);
      if (current.pid !== undefined) events.started(current.pid);
      const { status, how } = await ending(current);
      current = undefined;
      if (stopping.signal.aborted) return;
      if (status === EXIT_CONFIG) return events.refused();
      if (performance.now() - bornAt > SETTLED_MS) delay = FIRST_DELAY_MS;
      events.died(how, delay);
      await sleep(delay, stopping.signal);
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }
  const life = live();
  const logCheck = setInterval(() => cutLog(spec.logFile), LOG_CHECK_MS);
  const kill = () => {
    stopping.abort();
    current?.kill("SIGKILL");
  };
  return {
    role: spec.command[1],
    pid: () => current?.pid,
    kill,
    async stop(withinMs) {
      stopping.abort();
      current?.kill("SIGTERM");
      const timer = setTimeout(kill, withinMs);
      await life;
      clearTimeout(timer);
      clearInterval(logCheck);
    },
  };
}

function launch(spec: ChildSpec): ChildProcess {
  cutLog(spec.logFile);
  const log = openSync(spec.logFile, "a", 0o600);
  // Its log lines go straight to the file, at no cost to us; what it says on standard error (wrong
  // settings, a crash) is shown as well. Detached: a Ctrl-C reaches us alone, and we let it drain.
  const child = spawn(process.execPath, spec.command, {
    cwd: ROOT,
    // The part watches this parent, and ends when it is gone.
    env: { ...spec.env, PARENT_PID: String(process.pid) },
    detached: true,
    stdio: ["ignore", log, "pipe"],
  });
  closeSync(log);
  child.stderr?.on("data", (chunk: Buffer) => {
    process.stderr.write(chunk);
    appendFileSync(spec.logFile, chunk);
  });
  return child;
}

/** A log that has grown large becomes the previous one. */
export function cutLog(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < LARGEST_LOG) return;
  copyFileSync(path, `${path}.1`);
  // It is cut in place, because a running part keeps its file open and appends to what is left.
  truncateSync(path, 0);
}

function ending(child: ChildProcess): Promise<{ status: number | null; how: string }> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ status: null, how: error.message }));
    child.once("exit", (status, name) => {
      resolve({ status, how: name === null ? `exit status ${status}` : name });
    });
  });
}

async function sleep(ms: number, end: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    end.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const DRAIN_MS = 9_000;

/** Waits for the parts of a start that was killed, which see that and drain, and ends those that do not end in time. */
export async function endLeftovers(
  children: readonly { pid: number; role: string }[],
): Promise<void> {
  // A pid may have become another program's.
  const left = () =>
    children.filter(
      ({ pid, role }) => isAlive(pid) && commandLine(pid).endsWith(`main.ts ${role}`),
    );
  if (left().length === 0) return;
  console.log("Waiting for the processes of an earlier start to end ...");
  await waitUntil(() => left().length === 0, DRAIN_MS);
  for (const { pid } of left()) signal(pid, "SIGKILL");
}
