import { mkdirSync, openSync } from "node:fs";
import { join } from "node:path";

import { Redis } from "ioredis";

import { startEmbeddedRedis } from "../../../scripts/demo/stores/embedded-redis.ts";
import { freePort } from "../../../scripts/demo/stores/keep.ts";
import { startTcpProxy, type TcpProxy } from "../../support/network/tcp-proxy.ts";

export interface ChaosRedis {
  readonly proxiedUrl: string;
  readonly proxy: TcpProxy;
  /** Kills Redis, which loses all data, and starts it after the down time. */
  kill(downMs: number): Promise<void>;
  flush(): Promise<void>;
  pause(ms: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedis(folder: string): Promise<ChaosRedis> {
  const home = join(folder, "redis");
  mkdirSync(home);
  const log = openSync(join(folder, "redis.log"), "a");
  const [port, password] = [await freePort(), crypto.randomUUID()];
  const start = () => startEmbeddedRedis({ folder: home, port, password, log });
  let server = await start();
  const { url } = server;
  const proxy = await startTcpProxy(port);
  return {
    proxiedUrl: proxy.in(url),
    proxy,
    async kill(downMs) {
      await server.stop();
      await Bun.sleep(downMs);
      server = await start();
    },
    flush: () => tell(url, ["flushall"]),
    pause: (ms) => tell(url, ["client", "pause", String(Math.round(ms)), "all"]),
    async stop() {
      proxy.stop();
      await server.stop();
    },
  };
}

/** Sends one command and ignores that the server may be down. */
async function tell(url: string, [command = "", ...args]: readonly string[]): Promise<void> {
  const client = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  client.on("error", () => undefined);
  await client
    .connect()
    .then(() => client.call(command, ...args))
    .catch(() => undefined);
  client.disconnect();
}
