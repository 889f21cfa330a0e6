// Supervises one part of the service: starts it, restarts it after a crash, and drains it at the end.
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, closeSync, copyFileSync, openSync, statSync, truncateSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { EXIT_CONFIG } from "../../src/lib/config.ts";
import { commandLine, isAlive, signal, waitUntil } from "./stores/processes.ts";
import { ROOT } from "../install/install.ts";

export interface ChildSpec {
  /** The name of the part in messages. */
  name: string;
  /** The script and its role, in the form in which the process list shows them. */
  command: [script: string, role: string];
  env: Record<string, string>;
  logFile: string;
  /** Options of Bun before the script. */
  flags: readonly string[];
}

interface ChildEvents {
  started(pid: number): void;
  /** The part crashed and is restarted after `delayMs`. */
  died(how: string, delayMs: number): void;
  /** The part has printed an error that a restart cannot correct, such as a wrong setting. */
  rejected(): void;
}

export interface Child {
  role: string;
  /** The part's current process id; undefined between a crash and the restart. */
  pid(): number | undefined;
  /** Drains the part and starts it again. */
  restart(): void;
  /** Sends SIGTERM, and SIGKILL when the time is up. */
  stop(withinMs: number): Promise<void>;
  kill(): void;
}

const FIRST_DELAY_MS = 200;
const LONGEST_DELAY_MS = 4_000;
/** Uptime in ms after which the restart delay returns to its minimum. */
const SETTLED_MS = 30_000;
const LARGEST_LOG = 50_000_000;
const LOG_CHECK_MS = 60_000;

export function superviseChild(spec: ChildSpec, events: ChildEvents): Child {
  const stopping = new AbortController();
  let current: ChildProcess | undefined;
  let isRestarting = false;

  async function live(): Promise<void> {
    let delay = FIRST_DELAY_MS;
    while (!stopping.signal.aborted) {
      const bornAt = performance.now();
      current = launch(spec);
      if (current.pid !== undefined) events.started(current.pid);
      const { status, how } = await ending(current);
      current = undefined;
      if (stopping.signal.aborted) return;
      if (isRestarting) {
        isRestarting = false;
        continue;
      }
      if (status === EXIT_CONFIG) return events.rejected();
      if (performance.now() - bornAt > SETTLED_MS) delay = FIRST_DELAY_MS;
      events.died(how, delay);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => undefined);
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
    restart() {
      isRestarting = current?.kill("SIGTERM") ?? false;
    },
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
  // The part writes its log directly to the file. Its standard error (wrong settings, a crash) is also shown on the
  // screen. The part is detached, so that Ctrl-C reaches only this process, which then drains the part.
  const child = spawn(process.execPath, [...spec.flags, ...spec.command], {
    cwd: ROOT,
    // The part watches this parent and ends when the parent has ended.
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

/** Rotates a log that has become large. */
export function cutLog(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) < LARGEST_LOG) return;
  copyFileSync(path, `${path}.1`);
  // The file is truncated in place, because a running part keeps it open and appends to it.
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

const DRAIN_MS = 9_000;

/**
 * Waits for the parts of an earlier start that was killed. They notice the end of their parent and drain. Kills the
 * parts that take too long.
 */
export async function endLeftovers(
  children: readonly { pid: number; role: string }[],
): Promise<void> {
  // The command line is compared, too, because another program may have the pid now.
  const left = () =>
    children.filter(
      ({ pid, role }) => isAlive(pid) && commandLine(pid).endsWith(`main.ts ${role}`),
    );
  if (left().length === 0) return;
  console.log("Waiting until the processes of an earlier start have stopped ...");
  await waitUntil(() => left().length === 0, DRAIN_MS);
  for (const { pid } of left()) signal(pid, "SIGKILL");
}
