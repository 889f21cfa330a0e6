import type { Redis } from "ioredis";

import { expect, test } from "bun:test";

import { probeRedis, SHARDS } from "../../../src/outbox/schedule.ts";

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
