import { Redis } from "ioredis";

import { errorFields, type Log } from "./log.ts";

/** A command that takes longer has failed: Redis only hints, nobody waits for it. */
const COMMAND_TIMEOUT_MS = 1_000;
const RECONNECT_MAX_MS = 2_000;

/** Who has not reached Redis for so long since the start has the wrong address. */
const FIRST_CONNECT_MS = 60_000;

/**
 * A connection that fails fast while Redis is away and comes back by itself, from the start on: nobody waits for it.
 * `never` is called if there was no connection at all for a minute.
 */
export function openRedis(url: string, log: Log, never: () => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: (times) => Math.min(times * 100, RECONNECT_MAX_MS),
  });
  let wasUp = true;
  const patience = setTimeout(never, FIRST_CONNECT_MS);
  redis.on("ready", () => {
    clearTimeout(patience);
    if (!wasUp) log.info("redis.back");
    wasUp = true;
  });
  redis.on("end", () => clearTimeout(patience));
  redis.on("error", (error: Error) => {
    if (wasUp) log.warn("redis.failed", errorFields(error));
    wasUp = false;
  });
  return redis;
}

/** The same, once it is connected. Rejects if it cannot be reached now. */
export async function connectRedis(url: string, log: Log): Promise<Redis> {
  const redis = openRedis(url, log, () => {});
  await new Promise<void>((resolve, reject) => {
    redis.once("ready", resolve);
    redis.once("error", reject);
  });
  return redis;
}
