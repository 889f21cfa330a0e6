// Other processes of this machine: is one alive, what is it, which of them belong to a folder.
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !isZombie(pid);
  } catch (error) {
    // EPERM: it lives and belongs to somebody else.
    return errorCode(error) === "EPERM";
  }
}

/** Whether it is dead and nobody has asked how it ended; in a container the first process often asks for none. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Sends a signal; a process that has ended meanwhile is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (errorCode(error) !== "ESRCH") throw error;
  }
}

/** The command line with its arguments separated by spaces; empty if the process is gone. */
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
 * The processes whose working directory is `folder`: a store changes into its data folder, so these
 * are its server and that server's children. Without /proc nobody is found.
 */
export function processesIn(folder: string): number[] {
  return findProcesses((pid) => readlinkSync(`/proc/${pid}/cwd`) === folder);
}

/** The processes that work for `folder`: they run in there, or took it for their temporary files. */
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
        // It has ended meanwhile, or belongs to somebody else.
        return false;
      }
    });
}

/** Whether `condition` came true within the time. */
export async function waitUntil(condition: () => boolean, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > deadline) return false;
    await Bun.sleep(20);
  }
  return true;
}

export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
