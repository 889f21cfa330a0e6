// Runs before node_modules exists, so it imports only built-in modules and files that do the same.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { driverError } from "../../db/driver.ts";
import { RELAUNCHED, watchForStop } from "./stop-signal.ts";

export const ROOT = join(import.meta.dirname, "../..");

const MODULES = join(ROOT, "node_modules");

/**
 * The dependencies that a command needs. `demo` is for the service and the demo's stores; `all` is also for tests and
 * checks.
 */
export type Needed = "demo" | "all";

const INSTALLS: Readonly<Record<Needed, readonly (readonly string[])[]>> = {
  demo: [["--production"], ["--filter", "reviewrelay-demo"]],
  all: [[]],
};

/**
 * Installs the dependencies if node_modules is missing, was created from another bun.lock, or lacks packages. If it was
 * missing, this function never returns: it continues in a new process, because Bun caches for the lifetime of this
 * process that there is no node_modules.
 */
export async function ensureInstalled(needed: Needed): Promise<void> {
  // Compares a hash and not the file times, because a checkout or a copy changes the times.
  const lock = createHash("sha256")
    .update(readFileSync(join(ROOT, "bun.lock")))
    .digest("hex");
  const stamp = join(MODULES, ".bun-lock-sha256");
  const [installedLock, installed] = (readIfThere(stamp) ?? "").split(" ");
  const isEnough = installed === "all" || installed === needed;
  if (installedLock === lock && isEnough && driverError() === undefined) return;
  const wasMissing = !existsSync(MODULES);
  console.log("Installing dependencies ...");
  install(needed);
  try {
    writeFileSync(stamp, `${lock} ${needed}`);
  } catch {
    // The folder belongs to another user. Its dependencies are complete, and the next start checks them again.
  }
  if (wasMissing) await relaunch();
}

function install(needed: Needed): void {
  for (const flags of INSTALLS[needed]) {
    // Uses the path of the running Bun, because Bun may not be in PATH.
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["install", "--frozen-lockfile", ...flags],
      { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] },
    );
    if (status === 0) continue;
    console.error(`${stdout}${stderr}`.trim());
    console.error(
      `Could not install the dependencies into ${MODULES}: check that the folder is writable and the package registry is reachable, then start again.`,
    );
    process.exit(1);
  }
}

/** Runs the same command in a new process. This process only forwards signals, and exits with the same status. */
async function relaunch(): Promise<never> {
  const child = spawn(process.execPath, process.argv.slice(1), {
    env: { ...process.env, [RELAUNCHED]: "1" },
    stdio: "inherit",
  });
  const stop = watchForStop(() => child.kill("SIGTERM"));
  stop.addEventListener("abort", () => child.kill("SIGTERM"));
  const status = await new Promise<number>((resolve) => {
    child.once("error", (error) => {
      console.error(error.message);
      resolve(1);
    });
    child.once("exit", (code) => resolve(code ?? 1));
  });
  process.exit(status);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
