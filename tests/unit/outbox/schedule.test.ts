import type { Redis } from "ioredis";

import { describe, expect, test } from "bun:test";

import { systemClock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/log.ts";
import { BackgroundWaker, probeRedis, SHARDS, type Wake } from "../../../src/outbox/schedule.ts";

test("the probe writes in every shard, because a server may have only a part of the keys", async () => {
  const keys: unknown[] = [];
  // The probe uses only these methods of Redis.
  const redis = {
    defineCommand: () => {},
    probe: async (key: string) => void keys.push(key),
  } as unknown as Redis;
  await probeRedis(redis, "own:");
  expect(keys).toEqual(Array.from({ length: SHARDS }, (_, shard) => `own:{${shard}}:probe`));
});

describe("wakes in the background", () => {
  const wake: Wake = { subscriptionId: "01JYZ0000000000000000000AA", shard: 7 };

  /** A Redis that answers when it is told to, and the wakes that it got. */
  function hangingRedis() {
    const answers = Array.from({ length: 100 }, () => Promise.withResolvers<void>());
    const got: (readonly Wake[])[] = [];
    const lines: string[] = [];
    const waker = new BackgroundWaker(
      {
        wake: (wakes) => answers[got.push(wakes) - 1]?.promise ?? Promise.resolve(),
        wakeMailer: () => answers[got.push([]) - 1]?.promise ?? Promise.resolve(),
      },
      createLog({ role: "api", level: "debug", clock: systemClock }, (line) => lines.push(line)),
    );
    return { waker, got, lines, answer: () => answers.forEach(({ resolve }) => resolve()) };
  }

  test("are sent at once, and 64 calls wait for Redis; those of the 65th are dropped and counted", async () => {
    const { waker, got, lines, answer } = hangingRedis();
    for (let i = 0; i < 64; i++) waker.wake([wake]);
    expect(got).toHaveLength(64);
    waker.wake([wake, wake]);
    expect(got).toHaveLength(64);
    answer();
    await waker.flush();
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('"wakes":2');
    waker.wake([wake]);
    expect(got).toHaveLength(65);
  });

  test("are flushed: the flush waits for those that are under way", async () => {
    const { waker, answer } = hangingRedis();
    waker.wake([wake]);
    let isFlushed = false;
    const flushed = waker.flush().then(() => (isFlushed = true));
    await Bun.sleep(1);
    expect(isFlushed).toBe(false);
    answer();
    await flushed;
  });
});
