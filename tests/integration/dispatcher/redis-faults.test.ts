import { afterEach, beforeEach, describe, expect, test } from "bun:test";

import {
  startValkeyBridge,
  type ValkeyServer,
} from "../../../scripts/demo/stores/valkey-bridge.ts";
import { createRateLimiter } from "../../../src/http/rate-limit.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { connectRedis, openRedis } from "../../../src/lib/redis.ts";
import { createSchedule, probeRedis, type Wake } from "../../../src/outbox/schedule.ts";
import { silentLog } from "../../support/dispatch.ts";
import { type TcpProxy, startTcpProxy } from "../../support/network/tcp-proxy.ts";
import { until } from "../../support/network/receiver.ts";

describe("half-open connections", () => {
  test("are replaced, so that commands succeed over new ones", async () => {
    const redis = await connect(proxy.port);
    proxy.freeze();
    await until("an answer", async () => (await outcome(redis.set("a", 1))) === "ok", PATIENCE_MS);
    expect(proxy.accepted).toBe(2);
  });

  test("are detected without commands, also on the connection that only listens", async () => {
    const redis = await connect(proxy.port);
    const heard: Wake[] = [];
    await createSchedule(redis, PREFIX, silentLog).onWake((wake) => void heard.push(wake));
    expect(proxy.accepted).toBe(2);
    proxy.freeze();
    const writer = createSchedule(direct, PREFIX, silentLog);
    await until(
      "a wake",
      async () => {
        await writer.wake([WAKE]);
        return heard.length > 0;
      },
      PATIENCE_MS,
    );
    await until("the other connection", () => proxy.accepted >= 4, PATIENCE_MS);
    await until("its answer", () => redis.status === "ready", PATIENCE_MS);
  });

  test("at the first start do not prevent a later connection", async () => {
    proxy.deaf = true;
    const redis = openRedis(`redis://127.0.0.1:${proxy.port}`, silentLog);
    opened.push(redis);
    const heard: Wake[] = [];
    const schedule = createSchedule(redis, PREFIX, silentLog);
    const listening = schedule.onWake((wake) => void heard.push(wake));
    await until("a second try of both", () => proxy.accepted >= 4, PATIENCE_MS);
    expect(redis.status).not.toBe("ready");
    proxy.deaf = false;
    await listening;
    await until("it is ready", () => redis.status === "ready", PATIENCE_MS);
    await schedule.wake([WAKE]);
    await until("the wake", () => heard.length > 0);
  });
});

test("a value of the wrong type is deleted, so that the schedule and the rate limiter work again", async () => {
  const warned: string[] = [];
  const log = { ...silentLog, warn: (event: string) => void warned.push(event) };
  const schedule = createSchedule(direct, PREFIX, log);
  await direct.set(SET, "not a set");
  await schedule.wake([WAKE]);
  expect(warned).toEqual(["schedule.failed"]);
  await schedule.wake([WAKE]);
  expect(warned).toHaveLength(1);
  expect((await schedule.takeDue(7, new Date(), 10)).due).toEqual([WAKE.subscriptionId]);

  await direct.set(SET, "not a set");
  expect(await schedule.takeDue(7, new Date(), 10)).toEqual({ due: [], nextAt: undefined });
  const one = { perMinute: 1, burst: 3 };
  const limiter = createRateLimiter({
    redis: direct,
    prefix: PREFIX,
    clock: systemClock,
    log,
    limits: { user: one, ip: one, signIn: one },
  });
  await direct.set(`${PREFIX}rate:ip:192.0.2.1`, "no bucket");
  expect((await limiter.take({ kind: "ip", id: "192.0.2.1" }))?.remaining).toBe(2);
  expect([limiter.unchecked, warned.length]).toEqual([0, 1]);
});

describe("the probe", () => {
  test("succeeds if everything works, and leaves no key behind", async () => {
    await direct.zadd(SET, 0, WAKE.subscriptionId);
    await probeRedis(direct, PREFIX);
    expect(await direct.zrange(SET, "0", "-1")).toEqual([WAKE.subscriptionId]);
    await until("the probe gone", async () => (await direct.dbsize()) === 1);
  });

  test("fails if PING works but scripts are forbidden", async () => {
    await direct.call("ACL", "SETUSER", "mute", "on", ">word", "~*", "&*", "+@all", "-@scripting");
    const mute = await connect(server.port, "mute:word@");
    expect(await mute.ping()).toBe("PONG");
    expect(await outcome(probeRedis(mute, PREFIX))).toContain("NOPERM");
  });

  test("fails if PING works but nothing can be written", async () => {
    await direct.config("SET", "maxmemory", "1");
    expect(await direct.ping()).toBe("PONG");
    expect(await outcome(probeRedis(direct, PREFIX))).toContain("OOM");
  });
});

type Redis = Awaited<ReturnType<typeof connectRedis>>;

const PREFIX = "faults:";

const WAKE: Wake = { subscriptionId: "01JYZ0000000000000000000AA", shard: 7 };

const SET = `${PREFIX}{7}:due`;

const PATIENCE_MS = 60_000;

let server: ValkeyServer;

let proxy: TcpProxy;

let direct: Redis;

const opened: Redis[] = [];

beforeEach(async () => {
  server = startValkeyBridge({ port: 0, onFailure: (error) => console.error(error) });
  proxy = await startTcpProxy(server.port);
  direct = await connect(server.port);
});

afterEach(() => {
  for (const redis of opened.splice(0)) redis.disconnect();
  proxy.stop();
  server.stop();
});

async function connect(port: number, user = ""): Promise<Redis> {
  const redis = await connectRedis(`redis://${user}127.0.0.1:${port}`, silentLog);
  opened.push(redis);
  return redis;
}

const outcome = (work: Promise<unknown>) =>
  work.then(
    () => "ok",
    (error: unknown) => String(error),
  );
