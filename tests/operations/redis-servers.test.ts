import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";

import {
  startCluster,
  startRedisServer,
  startSentinels,
  type Sentinels,
} from "../../scripts/demo/stores/redis-servers.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSchedule, probeRedis, refuseCluster, type Wake } from "../../src/outbox/schedule.ts";
import { silentLog } from "../support/dispatch.ts";
import { DispatcherProcess } from "../support/processes/dispatcher-process.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { createDatabase } from "../support/postgres.ts";
import { until } from "../support/network/receiver.ts";
import { lacks } from "../support/needs.ts";

const isHere = !lacks("redis-server");

describe.skipIf(!isHere)("Sentinels", () => {
  let sentinels: Sentinels;
  beforeAll(async () => {
    sentinels = await startSentinels();
  });
  afterAll(() => sentinels?.stop());

  test.each(["SIGKILL", "SIGSTOP"] as const)(
    "lead to the new master after %s of the old one, and wakes arrive from there",
    async (signal) => {
      const redis = await connect(sentinels.url);
      const schedule = createSchedule(redis, PREFIX, silentLog);
      let heard = 0;
      await schedule.onWake(() => void (heard += 1));
      await schedule.wake([WAKE]);
      await until("the wake", () => heard === 1);
      const before = await sentinels.master();
      before.signal(signal);
      await until("the failover", async () => (await sentinels.master()) !== before, PATIENCE_MS);
      const wakes = async () => {
        await schedule.wake([WAKE]);
        return heard > 1;
      };
      await until("a wake", wakes, PATIENCE_MS);
      await until("a script", () =>
        probeRedis(redis, PREFIX).then(
          () => true,
          () => false,
        ),
      );
      // The wake may have come from a replica before its promotion: replicas publish messages, but write nothing.
      await schedule.wake([WAKE]);
      if (signal === "SIGSTOP") before.signal("SIGCONT");
      else await before.start();
      await sentinels.settled();
      expect((await schedule.takeDue(WAKE.shard, new Date(), 10)).due).toEqual([
        WAKE.subscriptionId,
      ]);
    },
  );
});

test.skipIf(!isHere)(
  "a connection to a server that became a replica is replaced by one to the server that has its address now",
  async () => {
    const [old, successor] = [await startRedisServer(), await startRedisServer()];
    const proxy = await startTcpProxy(old.port);
    started.push(old, successor, proxy);
    const redis = await connect(`redis://127.0.0.1:${proxy.port}`);
    await probeRedis(redis, PREFIX);
    await old.ask("REPLICAOF", "127.0.0.1", String(successor.port));
    expect(await redis.ping()).toBe("PONG");
    const refused = await probeRedis(redis, PREFIX).then(() => "ok", String);
    expect(refused).toContain("READONLY");
    proxy.target = successor.port;
    const writes = () =>
      probeRedis(redis, PREFIX).then(
        () => true,
        () => false,
      );
    await until("a server that can be written to", writes, PATIENCE_MS);
  },
);

describe.skipIf(!isHere)("a cluster of several servers", () => {
  test("is rejected at the start of a process, and only logged as not ready later", async () => {
    const cluster = await startCluster();
    const database = await createDatabase();
    started.push({ stop: () => database.drop() }, cluster);
    const redis = await connectRedis(cluster.url, silentLog);
    started.push({ stop: () => redis.disconnect() });
    const reasons: string[] = [];
    refuseCluster(redis, PREFIX, (reason) => void reasons.push(reason));
    redis.disconnect(true);
    await until("the rejection", () => reasons.length > 0);
    const again = new Promise((resolve) => redis.once("ready", resolve));
    redis.disconnect(true);
    await again;
    const readiness = await probeRedis(redis, PREFIX).then(() => "ok", String);
    expect([reasons.length, readiness]).toEqual([1, expect.stringContaining("MOVED")]);

    const dispatcher = new DispatcherProcess({
      DATABASE_URL: database.url,
      REDIS_URL: cluster.url,
      MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    });
    started.push(dispatcher);
    dispatcher.start();
    await until("its error message", () => dispatcher.log.includes("Redis Cluster"), PATIENCE_MS);
    expect(dispatcher.log).toContain("redis+sentinel://");
    expect(await dispatcher.exited()).toBe(78);
  });
});

const PREFIX = "servers:";

const WAKE: Wake = { subscriptionId: "01JYZ0000000000000000000AA", shard: 7 };

const PATIENCE_MS = 90_000;

const started: { stop(): unknown }[] = [];

afterEach(async () => {
  for (const one of started.splice(0).toReversed()) await one.stop();
});

async function connect(url: string) {
  const redis = await connectRedis(url, silentLog);
  started.push({ stop: () => redis.disconnect() });
  return redis;
}
