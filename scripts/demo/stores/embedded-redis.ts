// Runs a Redis-compatible server without persistence. Redis only carries wakes, and the sweeps find due work in
// PostgreSQL.
import { spawn, spawnSync } from "node:child_process";
import { createConnection } from "node:net";

import type { RunningStore } from "./embedded-postgres.ts";
import { hasEnded, processesIn, signal, waitUntil } from "./processes.ts";
import { startValkeyBridge } from "./valkey-bridge.ts";

export interface RedisOptions {
  /** Working folder of a native server. The caller has locked it against other starts. */
  folder: string;
  port: number;
  password: string;
  /** File descriptor for the server's log. */
  log: number;
}

const READY_WITHIN_MS = 60_000;
const STOP_WITHIN_MS = 2_000;
// The oldest supported major version; earlier ones lack required commands.
const OLDEST_MAJOR = 7;

export async function startEmbeddedRedis(options: RedisOptions): Promise<RunningStore> {
  for (const pid of processesIn(options.folder)) signal(pid, "SIGKILL");
  const program = ["valkey-server", "redis-server"].find(isUsable);
  const url = `redis://:${options.password}@127.0.0.1:${options.port}`;
  return {
    url,
    ...(program === undefined ? await startBridge(options) : await startNative(program, options)),
  };
}

function isUsable(program: string): boolean {
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return Number(/ v=(\d+)\./.exec(stdout ?? "")?.[1] ?? 0) >= OLDEST_MAJOR;
}

async function startNative(
  program: string,
  options: RedisOptions,
): Promise<Omit<RunningStore, "url">> {
  const server = spawn(program, ["-"], {
    cwd: options.folder,
    detached: true,
    stdio: ["pipe", options.log, options.log],
  });
  // The configuration is sent through standard input, because every user can read a password on a command line.
  server.stdin?.end(
    [
      `port ${options.port}`,
      "bind 127.0.0.1",
      `requirepass ${options.password}`,
      'save ""',
      "appendonly no",
      "",
    ].join("\n"),
  );
  const exited = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const stop = async () => {
    server.kill("SIGTERM");
    if (!(await waitUntil(() => hasEnded(server), STOP_WITHIN_MS))) server.kill("SIGKILL");
    await exited;
  };
  const deadline = performance.now() + READY_WITHIN_MS;
  while ((await ask(options.port, ["AUTH", options.password])) !== "+OK") {
    if (!hasEnded(server) && performance.now() < deadline) {
      await Bun.sleep(20);
      continue;
    }
    await stop();
    throw new Error(`${program} did not start on port ${options.port}; its log says why`);
  }
  return { exited, stop };
}

async function startBridge(options: RedisOptions): Promise<Omit<RunningStore, "url">> {
  const { promise: exited, resolve } = Promise.withResolvers<void>();
  const server = startValkeyBridge({
    port: options.port,
    onFailure(error) {
      console.error("the embedded Valkey failed:", error);
      resolve();
    },
  });
  const answer = await ask(server.port, ["CONFIG", "SET", "requirepass", options.password]);
  if (answer !== "+OK") throw new Error(`the embedded Valkey did not take a password: ${answer}`);
  return {
    exited,
    async stop() {
      server.stop();
      resolve();
    },
  };
}

/** Sends one command. Returns one line of the response, or the error. */
function ask(port: number, command: string[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    const finish = (answer: string) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(1_000, () => finish("no answer"));
    socket.once("error", (error) => finish(error.message));
    socket.once("close", () => finish("closed"));
    socket.once("data", (bytes) => finish(String(bytes).trim()));
    socket.write(`${command.join(" ")}\r\n`);
  });
}
