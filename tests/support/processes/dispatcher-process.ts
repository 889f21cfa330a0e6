import { type ChildProcess, spawn } from "node:child_process";

import { ROOT } from "../../../scripts/install/install.ts";
import type { ProcessOptions } from "./api-process.ts";

/** A dispatcher as a separate process, so that tests can kill it. */
export class DispatcherProcess {
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  log = "";

  readonly #options: ProcessOptions;

  constructor(env: Record<string, string>, options: ProcessOptions = {}) {
    this.#env = { WEBHOOK_ALLOW_HTTP: "1", WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8", ...env };
    this.#options = options;
  }

  start(): void {
    const { prefix = [], tree = ROOT } = this.#options;
    const [program, ...args] = [...prefix, process.execPath, "dispatcher/main.ts", "dispatcher"];
    const child = spawn(program, args, {
      cwd: tree,
      env: { PATH: process.env["PATH"] ?? "", ...this.#env, PARENT_PID: String(process.pid) },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const take = (chunk: Buffer) => void (this.log += chunk.toString());
    child.stdout?.on("data", take);
    child.stderr?.on("data", take);
    this.#child = child;
  }

  /** Waits until the process has ended, without ending it; answers its exit status. */
  async exited(): Promise<number | null> {
    const child = this.#child;
    if (child !== undefined && child.exitCode === null)
      await new Promise((resolve) => child.once("exit", resolve));
    return child?.exitCode ?? null;
  }

  /** Kills the process, which then releases no lease and finishes no POST. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }
}
