// Inspects other processes of this machine.
import { type ChildProcess, spawnSync } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    // EPERM means that the process exists and belongs to another user.
    return errorCode(error) === "EPERM";
  }
}

/** Returns whether a child process has exited or was ended by a signal. */
export function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Returns whether the process is dead but not reaped. The first process of a container often does not reap others. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Sends a signal. Does nothing if the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

/** Returns the command line, with its arguments separated by spaces; empty if the process has ended. */
export function commandLine(pid: number): string {
  if (process.platform === "linux") {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    } catch {
      return "";
    }
  }
  return spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
}

/**
 * Returns the processes whose working directory is `folder`. A store changes into its data folder, so these are its
 * server and the server's children. Returns none on systems without /proc.
 */
export function processesIn(folder: string): number[] {
  return findProcesses((pid) => readlinkSync(`/proc/${pid}/cwd`) === folder);
}

/** Returns the processes that run below `folder` or use it as their TMPDIR. */
export function processesUsing(folder: string): number[] {
  return findProcesses(
    (pid) =>
      `${readlinkSync(`/proc/${pid}/cwd`)}/`.startsWith(`${folder}/`) ||
      readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`TMPDIR=${folder}`),
  );
}

function findProcesses(matches: (pid: number) => boolean): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      try {
        return pid > 0 && pid !== process.pid && matches(pid);
      } catch {
        // The process has ended, or belongs to another user.
        return false;
      }
    });
}

type Condition = () => boolean | Promise<boolean>;

/** Waits until `condition` returns true. Returns false if it does not within the time. */
export async function waitUntil(condition: Condition, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await Bun.sleep(20);
  }
  return true;
}

/** Waits until `condition` returns true. Throws if it does not within the time, two minutes by default. */
export async function until(what: string, condition: Condition, withinMs = 120_000): Promise<void> {
  if (!(await waitUntil(condition, withinMs)))
    throw new Error(`Not within ${withinMs / 1_000} s: ${what}`);
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
