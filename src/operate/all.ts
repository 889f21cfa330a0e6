// Runs an API and a dispatcher as processes of this one. If one of them ends, the other is stopped and this process ends
// with its status, so that the supervisor of the machine restarts both.
import { spawn } from "node:child_process";

import { IS_EXECUTABLE } from "../../db/executable.ts";
import { configOrExit } from "../lib/lifecycle.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

// Rejects faulty settings once and not in both processes.
const { metricsPort } = configOrExit();
const children = ["api", "dispatcher"].map((role, at) =>
  spawn(process.execPath, IS_EXECUTABLE ? [role] : [Bun.main, role], {
    env: {
      ...process.env,
      PARENT_PID: String(process.pid),
      // The dispatcher's metrics are at the next port.
      ...(metricsPort !== undefined && { METRICS_PORT: String(metricsPort + at) }),
    },
    // A Ctrl-C reaches only this process, which forwards it.
    detached: true,
    stdio: "inherit",
  }),
);
let isStopping = false;

function stop(signal: NodeJS.Signals): void {
  isStopping = true;
  for (const child of children) child.kill(signal);
}

for (const signal of SIGNALS) process.on(signal, () => stop(signal));

const statuses = await Promise.all(
  children.map(
    (child) =>
      new Promise<number>((resolve) => {
        child.once("close", (status) => {
          // A process that ends by itself has failed, whatever its status.
          const failed = status === null || (status === 0 && !isStopping) ? 1 : status;
          if (!isStopping) stop("SIGTERM");
          resolve(failed);
        });
      }),
  ),
);
process.exit(Math.max(...statuses));
