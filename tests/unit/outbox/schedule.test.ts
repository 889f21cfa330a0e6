import type { Redis } from "ioredis";

import { expect, test } from "bun:test";

import { probeRedis, SHARDS } from "../../../src/outbox/schedule.ts";

test("the probe writes in every shard, because a server may have only a part of the keys", async () => {
  const keys: unknown[] = [];
  // The probe uses only this method of Redis.
  const redis = {
    evalsha: async (_sha: string, count: number, key: string) => void keys.push([count, key]),
  } as unknown as Redis;
  await probeRedis(redis, "own:");
  expect(keys).toEqual(Array.from({ length: SHARDS }, (_, shard) => [1, `own:{${shard}}:probe`]));
});
