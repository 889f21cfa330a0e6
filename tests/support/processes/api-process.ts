import { type ChildProcess, spawn } from "node:child_process";
import { createHmac } from "node:crypto";

import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { ROOT } from "../../../scripts/install/install.ts";
import { BASE_PATH } from "../../../src/http/access.ts";
import { fieldsOf } from "../../../src/lib/fields.ts";
import type { TestProvider } from "../factory.ts";
import { until } from "../network/receiver.ts";

const READY_MS = 60_000;

export interface ProcessAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ProcessOptions {
  /** A command that runs another command, such as `unshare -m`. */
  readonly prefix?: readonly string[];
  /** The checkout that the process runs from. */
  readonly tree?: string;
  /** A port that is free; any by default. */
  readonly port?: number;
  /** The address that it listens on; loopback by default. */
  readonly host?: string;
}

/** The API as a separate process, with its real connections and limits. */
export class ApiProcess {
  readonly root: string;
  readonly #child: ChildProcess;
  #said = "";

  private constructor(
    port: number,
    env: Readonly<Record<string, string>>,
    { prefix = [], tree = ROOT, host = "127.0.0.1" }: ProcessOptions = {},
  ) {
    this.root = `http://${host}:${port}`;
    const [program, ...args] = [...prefix, process.execPath, "src/main.ts", "api"];
    this.#child = spawn(program, args, {
      cwd: tree,
      env: {
        PATH: process.env["PATH"] ?? "",
        REDIS_URL: process.env["TEST_REDIS_URL"] ?? "",
        RATE_LIMITS: "off",
        LOG_LEVEL: "warn",
        DRAIN_DELAY_MS: "0",
        ...env,
        HOST: host,
        PORT: String(port),
        PARENT_PID: String(process.pid),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const take = (chunk: Buffer) => void (this.#said += chunk.toString());
    this.#child.stdout?.on("data", take);
    this.#child.stderr?.on("data", take);
  }

  /**
   * Starts a process and waits until `/readyz` answers 200; throws if the process ends before. `env` must have
   * `DATABASE_URL` and `MASTER_KEY`.
   */
  static async start(
    env: Readonly<Record<string, string>>,
    options?: ProcessOptions,
  ): Promise<ApiProcess> {
    const api = new ApiProcess(options?.port ?? (await freePort()), env, options);
    const isReady = () => {
      if (api.#child.exitCode !== null) throw new Error(`The API has ended: ${api.#said}`);
      return api.isReady();
    };
    await until("the API is ready", isReady, READY_MS);
    return api;
  }

  /** Runs a process that must fail to start; answers its exit status and its output. */
  static async fail(env: Readonly<Record<string, string>>): Promise<[number | null, string]> {
    const api = new ApiProcess(await freePort(), env);
    const status = await new Promise<number | null>((resolve) => api.#child.once("exit", resolve));
    return [status, api.#said];
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get said(): string {
    return this.#said;
  }

  async isReady(): Promise<boolean> {
    return (await this.call("GET", `${this.root}/readyz`).catch(() => undefined))?.status === 200;
  }

  async call(method: string, url: string, init: RequestInit = {}): Promise<ProcessAnswer> {
    const response = await fetch(url, { method, ...init });
    const body: unknown = await response.json();
    return { status: response.status, headers: response.headers, body: fieldsOf(body) };
  }

  async login(email: string, password: string): Promise<ProcessAnswer> {
    return this.call("POST", `${this.root}${BASE_PATH}/login`, {
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email, password }),
    });
  }

  /** Reports events as the provider's puller does. `root` may be the address of a proxy in between. */
  async report(
    { slug, secret }: TestProvider,
    events: readonly unknown[],
    {
      root = this.root,
      signal,
      traceparent,
    }: { root?: string; signal?: AbortSignal; traceparent?: string } = {},
  ): Promise<ProcessAnswer> {
    const body = JSON.stringify({ events });
    const digest = createHmac("sha256", secret).update(body).digest("hex");
    return this.call("POST", `${root}${BASE_PATH}/providers/${slug}/events`, {
      headers: {
        "Content-Type": "application/json",
        "X-Provider-Signature": `sha256=${digest}`,
        ...(traceparent !== undefined && { traceparent }),
      },
      body,
      ...(signal && { signal }),
    });
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Waits until the process has ended, without ending it; answers its exit status. */
  async exited(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null)
      await new Promise((resolve) => this.#child.once("exit", resolve));
    return this.#child.exitCode;
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
