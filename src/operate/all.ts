// Runs an API and a dispatcher as child processes of this one. If one child ends, the other is stopped, and this
// process ends with the higher of both exit statuses, so that the machine's supervisor restarts both.
import { spawn } from "node:child_process";

import { IS_EXECUTABLE } from "../../db/executable.ts";
import { configOrExit } from "../lib/lifecycle.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

// Faulty settings are rejected before the children start, so that the errors are printed once and not by both of them.
const { metricsPort } = configOrExit();
const children = ["api", "dispatcher"].map((role, at) =>
  spawn(process.execPath, IS_EXECUTABLE ? [role] : [Bun.main, role], {
    env: {
      ...process.env,
      PARENT_PID: String(process.pid),
      // The API serves its metrics at `METRICS_PORT`, and the dispatcher at the next port.
      ...(metricsPort !== undefined && { METRICS_PORT: String(metricsPort + at) }),
    },
    // The children have process groups of their own, so that a Ctrl-C reaches only this process, which forwards it.
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
          // A child that ends without a signal from this process has failed, even if its status is 0.
          const failed = status === null || (status === 0 && !isStopping) ? 1 : status;
          if (!isStopping) stop("SIGTERM");
          resolve(failed);
        });
      }),
  ),
);
process.exit(Math.max(...statuses));
