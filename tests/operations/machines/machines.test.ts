// Proves docs/operations/recovery.md, "Automatic failover".
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";

import { ROOT } from "../../../scripts/install/install.ts";
import { until } from "../../support/network/receiver.ts";
import { postgresPrograms } from "./stores.ts";

/** 22 faults take about 15 minutes. The run itself gives up after 25. */
const TEST_MS = 1_600_000;
/**
 * Runs a command in namespaces of its own, under a shell that collects the ends of orphans, such as the server that
 * Patroni starts.
 */
const IN_NAMESPACES = "unshare --net --mount --pid --fork --kill-child --mount-proc sh -c"
  .split(" ")
  .concat('"$@"; exit $?', "sh");
const hasMachines = canRun();

test.skipIf(!hasMachines)(
  "while each link is cut and each machine is killed in turn, no event is lost or out of order, and all is back 15 s after each heal",
  async () => {
    const run = startRun("inherit");
    expect(await run.exited).toBe(0);
  },
  TEST_MS,
);

test.skipIf(!hasMachines).each(["the end of its input", "SIGKILL"] as const)(
  "after %s nothing of a run is left",
  async (end) => {
    const run = startRun("ignore");
    const namespace = () => readlinkSync(`/proc/${run.pid}/ns/pid_for_children`);
    const outer = readlinkSync("/proc/self/ns/pid");
    await until("namespaces", () => namespace() !== outer);
    const inner = namespace();
    await until("machines", () => processesOf(inner).length > MACHINES);
    if (end === "SIGKILL") run.kill("SIGKILL");
    else await run.stdin.end();
    await run.exited;
    await until("no process", () => processesOf(inner).length === 0);
  },
);

const MACHINES = 13;

function startRun(output: "inherit" | "ignore") {
  return Bun.spawn([...IN_NAMESPACES, process.execPath, "tests/operations/machines/main.ts"], {
    cwd: ROOT,
    // The run ends when the other end of its input does, so it does not outlive this process.
    stdin: "pipe",
    stdout: output,
    stderr: output,
  });
}

/** Returns the processes of a process namespace, which holds the other namespaces of a run. */
function processesOf(namespace: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/ns/pid`) === namespace;
    } catch {
      return false;
    }
  });
}

/** Whether this machine has all programs, and lets us make namespaces with a bridge; logs a message if not. */
function canRun(): boolean {
  const programs = ["ip", "nft", "setpriv", "unshare", "caddy", "etcd", "patroni", "redis-server"];
  const missing = programs.filter((name) => Bun.which(name) === null);
  if (postgresPrograms() === undefined) missing.push("a PostgreSQL below /usr/lib/postgresql");
  const probe = "ip link add probe type bridge && nft add table bridge probe";
  const [program, ...args] = [...IN_NAMESPACES, "sh", "-c", probe];
  if (missing.length === 0 && spawnSync(program, args).status !== 0)
    missing.push("root on a Linux with network namespaces, bridges and nftables");
  if (missing.length > 0) console.log(`Skipped, because there is no ${missing.join(", no ")}.`);
  return missing.length === 0;
}
