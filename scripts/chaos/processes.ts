import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";

import { nowMs } from "./now.ts";

const ROOT = join(import.meta.dir, "../..");
const RESTART_MS = 500;
const STOPS_WITHIN_MS = 12_000;

/** A process of the product, which its supervisor starts again whenever it ends. */
export interface Supervised {
  readonly name: string;
  /** Somebody is at it: two faults never meet in one process. */
  isBusy: boolean;
  kill(downMs: number): Promise<void>;
  pause(ms: number): Promise<void>;
  /** Ends it in order; it stays ended. */
  stop(): Promise<void>;
}

interface Command {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly folder: string;
  /** It ended by itself, at this instant. */
  readonly ended: (atMs: number, how: string) => void;
}

export function supervise({ name, args, env, folder, ended }: Command): Supervised {
  const log = openSync(join(folder, `${name}.log`), "a");
  let child: ChildProcess | undefined;
  let isWanted = true;
  let isKilled = false;
  const start = () => {
    if (!isWanted) return;
    isKilled = false;
    const started = spawn(process.execPath, [...args], {
      cwd: ROOT,
      stdio: ["ignore", log, log],
      env: { PATH: process.env["PATH"] ?? "", PARENT_PID: String(process.pid), ...env },
    });
    child = started;
    started.once("exit", (status, by) => {
      if (!isWanted || isKilled) return;
      ended(nowMs(), `${name} ended with ${by ?? status}`);
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
