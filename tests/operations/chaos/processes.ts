import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { ROOT } from "../../../scripts/install/install.ts";
import { nowMs } from "./now.ts";
import type { Exit } from "../../verdicts/facts.ts";

const RESTART_MS = 500;
const LAST_LINES = 12;
const STOPS_WITHIN_MS = 12_000;

/** A process of the product that its supervisor restarts whenever it ends. */
export interface Supervised {
  readonly name: string;
  /** A fault is in progress; two faults never affect one process at the same time. */
  isBusy: boolean;
  kill(downMs: number): Promise<void>;
  pause(ms: number): Promise<void>;
  /** Stops the process gracefully; it is not restarted. */
  stop(): Promise<void>;
}

interface Command {
  readonly name: string;
  /** A command prefix, see ChaosNames. */
  readonly prefix?: readonly string[];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  /** Called if the process ended unexpectedly. */
  readonly ended: (exit: Exit) => void;
}

export function supervise({ name, prefix = [], args, env, folder, ended }: Command): Supervised {
  const path = join(folder, `${name}.log`);
  const log = openSync(path, "a");
  let child: ChildProcess | undefined;
  let isWanted = true;
  let isKilled = false;
  const start = () => {
    if (!isWanted) return;
    isKilled = false;
    const [program = "", ...rest] = [...prefix, process.execPath, ...args];
    const started = spawn(program, rest, {
      cwd: ROOT,
      stdio: ["ignore", log, log],
      env: { PATH: process.env["PATH"] ?? "", PARENT_PID: String(process.pid), ...env },
    });
    child = started;
    started.once("exit", (status, by) => {
      if (!isWanted || isKilled) return;
      const lastWords = readFileSync(path, "utf8").trimEnd().split("\n").slice(-LAST_LINES);
      ended({ name, how: String(by ?? status), atMs: nowMs(), lastWords });
      setTimeout(start, RESTART_MS);
    });
  };
  start();
  return {
    name,
    isBusy: false,
    async kill(downMs) {
      isKilled = true;
      await end(child, "SIGKILL");
      await Bun.sleep(downMs);
      start();
    },
    async pause(ms) {
      const paused = child;
      paused?.kill("SIGSTOP");
      await Bun.sleep(ms);
      paused?.kill("SIGCONT");
    },
    async stop() {
      isWanted = false;
      child?.kill("SIGCONT");
      await Promise.race([end(child, "SIGTERM"), Bun.sleep(STOPS_WITHIN_MS)]);
      await end(child, "SIGKILL");
    },
  };
}

async function end(child: ChildProcess | undefined, name: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill(name);
  await gone;
}
