// Starts Debian's redis-server as a single server, under Sentinels or as a cluster, for the tests.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Redis } from "ioredis";

import { freePort } from "./keep.ts";
import { hasEnded, until } from "./processes.ts";

const PATIENCE_MS = 60_000;

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Sends a command; returns null while the server is down. */
  ask(...command: [string, ...string[]]): Promise<unknown>;
  /** Starts the server again on the same port, without data. */
  start(): Promise<void>;
  signal(name: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/**
 * Starts a server on the loopback interface without persistence. `settings` are additional lines of its configuration.
 */
export async function startRedisServer(
  settings: readonly string[] = [],
  kind: "server" | "sentinel" = "server",
): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-redis-"));
  const port = await freePort();
  const file = join(folder, "redis.conf");
  const lines = [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, ...settings];
  if (kind === "server") lines.push('save ""', "appendonly no", "repl-diskless-sync-delay 0");
  writeFileSync(file, `${lines.join("\n")}\n`);
  let child: ChildProcess | undefined;
  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    ask: (...command) => askRedis({ port }, ...command),
    async start() {
      child = spawn("redis-server", [file, ...(kind === "sentinel" ? ["--sentinel"] : [])], {
        stdio: "ignore",
      });
      await until("a Redis server answers", () => isUp(server), PATIENCE_MS);
    },
    signal: (name) => void child?.kill(name),
    async stop() {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

const isUp = async (server: RedisServer) => (await server.ask("PING")) === "PONG";

const isJoined = async (node: RedisServer) =>
  String(await node.ask("CLUSTER", "INFO")).includes("cluster_state:ok");

export interface Sentinels {
  /** The value for `REDIS_URL`. */
  readonly url: string;
  /** Both servers; the first one is the master at the start. */
  readonly servers: readonly [RedisServer, RedisServer];
  /** Returns the current master according to the Sentinels. */
  master(): Promise<RedisServer>;
  /** Resolves when each Sentinel knows the other Sentinels, and a replica that could take over. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a master, a replica and three Sentinels with a quorum of two. They fail over after 1 s without a response. */
export async function startSentinels(): Promise<Sentinels> {
  const first = await startRedisServer();
  const second = await startRedisServer([`replicaof 127.0.0.1 ${first.port}`]);
  const watching = await Promise.all(
    [1, 2, 3].map(() =>
      startRedisServer(
        [
          `sentinel monitor main 127.0.0.1 ${first.port} 2`,
          "sentinel down-after-milliseconds main 1000",
          "sentinel failover-timeout main 3000",
        ],
        "sentinel",
      ),
    ),
  );
  const servers = [first, second] as const;
  const sentinels: Sentinels = {
    url: `redis+sentinel://${watching.map(({ port }) => `127.0.0.1:${port}`).join(",")}/main`,
    servers,
    async master() {
      const ports = await Promise.all(watching.map((one) => field(one, "port")));
      return servers.find((one) => ports.every((port) => port === String(one.port))) ?? first;
    },
    async settled() {
      for (const one of watching)
        await until("a Sentinel knows the others", () => isSentinelSettled(one), PATIENCE_MS);
    },
    async stop() {
      for (const one of [...watching, ...servers]) await one.stop();
    },
  };
  await sentinels.settled();
  return sentinels;
}

/** Returns whether a Sentinel knows the two other Sentinels, and a replica that could take over. */
export async function isSentinelSettled(one: Pick<RedisServer, "ask">): Promise<boolean> {
  const text = JSON.stringify(await one.ask("SENTINEL", "REPLICAS", "main"));
  const isReady = text.includes('"slave"') && text.includes('"master-link-status","ok"');
  return (
    isReady &&
    (await field(one, "flags")) === "master" &&
    (await field(one, "num-other-sentinels")) === "2"
  );
}

/** Returns a field of the master, as a Sentinel reports it. */
async function field(
  sentinel: Pick<RedisServer, "ask">,
  name: string,
): Promise<string | undefined> {
  const answer = await sentinel.ask("SENTINEL", "MASTER", "main");
  const fields = Array.isArray(answer) ? answer.map(String) : [];
  return fields[fields.indexOf(name) + 1];
}

/** Starts a cluster of three masters that share the slots. */
export async function startCluster(): Promise<{ url: string; stop(): Promise<void> }> {
  const nodes = await Promise.all([1, 2, 3].map(() => startRedisServer(["cluster-enabled yes"])));
  const last = 16_383;
  const share = Math.ceil((last + 1) / nodes.length);
  for (const [n, node] of nodes.entries()) {
    const to = Math.min(last, (n + 1) * share - 1);
    await node.ask("CLUSTER", "ADDSLOTSRANGE", String(n * share), String(to));
    await node.ask("CLUSTER", "SET-CONFIG-EPOCH", String(n + 1));
    await node.ask("CLUSTER", "MEET", "127.0.0.1", String(nodes[0]?.port));
  }
  for (const node of nodes) await until("the cluster is up", () => isJoined(node), PATIENCE_MS);
  return {
    url: nodes[0]?.url ?? "",
    async stop() {
      for (const node of nodes) await node.stop();
    },
  };
}

/** Sends a command to a server or a Sentinel. Returns null while it is down. */
export async function askRedis(
  at: { readonly port: number; readonly host?: string },
  ...[name, ...rest]: [string, ...string[]]
): Promise<unknown> {
  const redis = new Redis({
    ...at,
    protocol: 2,
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  redis.on("error", () => {});
  try {
    return await redis.call(name, ...rest);
  } catch {
    return null;
  } finally {
    redis.disconnect();
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || hasEnded(child)) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}
