import { Redis } from "ioredis";

import { errorFields, type Log } from "./log.ts";

/** A command that takes longer has failed: Redis only hints, nobody waits for it. */
const COMMAND_TIMEOUT_MS = 1_000;
const RECONNECT_MAX_MS = 2_000;

/** A connection that fails fast while Redis is away and comes back by itself. */
export async function connectRedis(url: string, log: Log): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: (times) => Math.min(times * 100, RECONNECT_MAX_MS),
  });
  let wasUp = true;
  redis.on("ready", () => {
    if (!wasUp) log.info("redis.back");
    wasUp = true;
  });
  redis.on("error", (error: Error) => {
    if (wasUp) log.warn("redis.failed", errorFields(error));
    wasUp = false;
  });
  await redis.connect();
  return redis;
}
