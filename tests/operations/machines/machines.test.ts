// Proves docs/operations/recovery.md, "Automatic failover".
import { expect, test } from "bun:test";

import { ROOT } from "../../../scripts/install/install.ts";
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
    const command = [...IN_NAMESPACES, process.execPath, "tests/operations/machines/main.ts"];
    const run = Bun.spawn(command, {
      cwd: ROOT,
      env: process.env,
      // The run ends when the other end of its input does, so it does not outlive this process.
      stdin: "pipe",
      stdout: "inherit",
      stderr: "inherit",
    });
    expect(await run.exited).toBe(0);
  },
  TEST_MS,
);
