import { Redis } from "ioredis";

import { errorFields, type Log } from "./log.ts";
import { type RedisSettings, sentinelOptions, serverOptions } from "./settings-reader.ts";

/** Time in ms after which a Redis command fails. Redis only carries hints, so no caller needs to wait longer. */
const COMMAND_TIMEOUT_MS = 1_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** Time in ms without an answer after which a connection is closed and opened again. */
const SILENCE_MS = 2_000;
/**
 * Interval in ms of a PING on every connection. Without it, a broken connection would not be noticed while it is idle
 * or only receives messages of channels.
 */
const PING_MS = 1_000;
const RECONNECT_MAX_MS = 2_000;
/** Minimum time in ms between two reconnects because of a read-only server. */
const READ_ONLY_MS = 1_000;

/**
 * Opens a Redis connection that reconnects automatically. Its commands fail fast while Redis is unreachable. Redis may
 * be unreachable at the start, too: the connection is then established later.
 */
export function openRedis(url: string, log: Log): Redis {
  const sentinels = sentinelOptions(url);
  const redis =
    sentinels === undefined
      ? new Redis(...serverOptions(url, options()))
      : new Redis({ ...sentinels, ...options() });
  let wasUp = true;
  redis.on("ready", () => {
    if (!wasUp) log.info("redis.back");
    wasUp = true;
  });
  redis.on("error", (error: Error) => {
    if (wasUp) log.warn("redis.failed", errorFields(error));
    wasUp = false;
  });
  keepPinging(redis);
  return redis;
}

/** Opens a Redis connection and waits until it is ready. Rejects if Redis cannot be reached now. */
export async function connectRedis(url: string, log: Log): Promise<Redis> {
  const redis = openRedis(url, log);
  await new Promise<void>((resolve, reject) => {
    redis.once("ready", resolve);
    redis.once("error", reject);
  });
  return redis;
}

/** Opens a second connection to the same Redis, for subscribing to channels. It closes together with the first one. */
export function openListener(redis: Redis): Redis {
  // ioredis must not subscribe to channels or send commands again, because the caller subscribes on every new
  // connection.
  const listener = redis.duplicate({
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    ...readOnlyOptions(),
  });
  // Errors are ignored here, because the first connection logs the same errors.
  listener.on("error", () => {});
  redis.setMaxListeners(redis.getMaxListeners() + 1);
  redis.once("end", () => listener.disconnect());
  keepPinging(listener);
  return listener;
}

function options(): RedisSettings {
  return {
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
    retryStrategy: (times) => Math.min(times * 100, RECONNECT_MAX_MS),
    ...readOnlyOptions(),
  };
}

/**
 * Makes ioredis reconnect after a READONLY error. The server has become a replica; its host name, or the Sentinels, may
 * lead to the new primary.
 */
function readOnlyOptions(): Pick<RedisSettings, "reconnectOnError"> {
  let lastMs = Number.NEGATIVE_INFINITY;
  return {
    reconnectOnError(error) {
      if (!error.message.startsWith("READONLY")) return false;
      if (performance.now() - lastMs < READ_ONLY_MS) return false;
      lastMs = performance.now();
      return true;
    },
  };
}

function keepPinging(redis: Redis): void {
  const timer = setInterval(() => {
    if (redis.status === "ready") redis.ping().catch(() => {});
  }, PING_MS);
  timer.unref();
  redis.once("end", () => clearInterval(timer));
}
