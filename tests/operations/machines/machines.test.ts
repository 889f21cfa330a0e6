// Proves docs/operations/recovery.md, "Automatic failover".
import { expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";

import { ROOT } from "../../../scripts/install/install.ts";
import { until } from "../../support/network/receiver.ts";
import { lacks } from "../../support/needs.ts";

/** 22 faults take about 15 minutes. The run itself gives up after 25. */
const TEST_MS = 1_600_000;
/**
 * Runs a command in namespaces of its own, under a shell that collects the ends of orphans, such as the server that
 * Patroni starts.
 */
const IN_NAMESPACES = "unshare --net --mount --pid --fork --kill-child --mount-proc sh -c"
  .split(" ")
  .concat('"$@"; exit $?', "sh");
const hasMachines = !lacks(
  "namespaces",
  "mounts",
  "caddy",
  "etcd",
  "patroni",
  "postgresql",
  "redis-server",
);

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
    const outer = readlinkSync("/proc/self/ns/pid");
    let inner = outer;
    await until("namespaces", () => {
      inner = namespaceOfChildren(run.pid) ?? outer;
      return inner !== outer;
    });
    await until("machines", () => processesOf(inner).length > MACHINES);
    if (end === "SIGKILL") run.kill("SIGKILL");
    else await run.stdin.end();
    await run.exited;
    await until("no process", () => processesOf(inner).length === 0);
  },
);

/** Returns undefined while a new namespace has no process yet, because its link cannot be read then. */
function namespaceOfChildren(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid_for_children`);
  } catch {
    return undefined;
  }
}

const MACHINES = 13;

function startRun(output: "inherit" | "ignore") {
  return Bun.spawn([...IN_NAMESPACES, process.execPath, "tests/operations/machines/main.ts"], {
    cwd: ROOT,
    env: process.env,
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
