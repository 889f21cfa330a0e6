import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../..");

/** A dispatcher as a separate process, so that tests can kill it. */
export class DispatcherProcess {
  readonly #env: Record<string, string>;
  #child: ChildProcess | undefined;
  log = "";

  readonly #prefix: readonly string[];

  /** `prefix` is a command that runs another command. */
  constructor(env: Record<string, string>, prefix: readonly string[] = []) {
    this.#env = { WEBHOOK_ALLOW_HTTP: "1", WEBHOOK_ALLOWED_NETWORKS: "127.0.0.0/8", ...env };
    this.#prefix = prefix;
  }

  start(): void {
    const [program, ...args] = [
      ...this.#prefix,
      process.execPath,
      "dispatcher/main.ts",
      "dispatcher",
    ];
    const child = spawn(program, args, {
      cwd: ROOT,
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
