// Starts processes of the product, from any checkout, for the proofs of docs/operations.
import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { join } from "node:path";

import { endInOrder } from "../bench/end.ts";

export const ROOT = join(import.meta.dir, "../..");

type Role = "api" | "dispatcher";
const MAIN: Readonly<Record<Role, string>> = {
  api: "src/main.ts",
  dispatcher: "dispatcher/main.ts",
};

export interface Running {
  readonly role: Role;
  /** The port for requests, or for the metrics of a dispatcher. */
  readonly port: number;
  readonly pid: number;
  /** Stops the process gracefully; returns its exit status. */
  stop(): Promise<number | null>;
}

interface Start {
  /** The checkout. */
  readonly tree: string;
  readonly role: Role;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  /** The folder for its log. */
  readonly folder: string;
}

/** Starts a process and waits until it is ready. */
export async function startProcess({ tree, role, port, env, folder }: Start): Promise<Running> {
  const log = openSync(join(folder, `${role}-${port}.log`), "a");
  const child = spawn(process.execPath, [MAIN[role], role], {
    cwd: tree,
    stdio: ["ignore", log, log],
    env: {
      PATH: process.env["PATH"] ?? "",
      PARENT_PID: String(process.pid),
      WEBHOOK_ALLOW_HTTP: "1",
      WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8",
      RATE_LIMITS: "off",
      ACCESS_LOG: "off",
      ...env,
      [role === "api" ? "PORT" : "METRICS_PORT"]: String(port),
    },
  });
  const running = { role, port, pid: child.pid ?? 0, stop: () => endInOrder(child) };
  try {
    await ready(child, port);
  } catch (error) {
    await running.stop();
    throw error;
  }
  return running;
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}: see its log.`);
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.ok === true) return;
    await Bun.sleep(100);
  }
  throw new Error("It was not ready within 30 seconds.");
}
