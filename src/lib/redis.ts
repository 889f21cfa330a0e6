import { Redis } from "ioredis";
import { createHash } from "node:crypto";

import { errorFields, type Log } from "./log.ts";
import { type RedisSettings, sentinelOptions } from "./settings-reader.ts";

/** A command that takes longer has failed: Redis only hints, nobody waits for it. */
const COMMAND_TIMEOUT_MS = 1_000;
const CONNECT_TIMEOUT_MS = 2_000;
/** A connection over which nothing came for so long, though something was asked, is given up and made anew. */
const SILENCE_MS = 2_000;
/** So that something is asked of every connection: one that nobody uses, or that only listens, may be half-open too. */
const PING_MS = 1_000;
const RECONNECT_MAX_MS = 2_000;
/** How soon a server that can only be read is asked for under its name again. */
const READ_ONLY_MS = 1_000;

/**
 * Opens a connection whose commands fail fast while Redis is away, and that comes back by itself. Redis may be away at
 * the start, too: a process that starts during an outage works as well as those that were started before.
 */
export function openRedis(url: string, log: Log): Redis {
  const sentinels = sentinelOptions(url);
  const redis =
    sentinels === undefined ? new Redis(url, options()) : new Redis({ ...sentinels, ...options() });
  let wasUp = true;
  redis.on("ready", () => {
    if (!wasUp) log.info("redis.back");
    wasUp = true;
  });
  redis.on("error", (error: Error) => {
    if (wasUp) log.warn("redis.failed", errorFields(error));
    wasUp = false;
  });
  keepAsking(redis);
  return redis;
}

/** The same, once it is connected. Rejects if it cannot be reached now. */
export async function connectRedis(url: string, log: Log): Promise<Redis> {
  const redis = openRedis(url, log);
  await new Promise<void>((resolve, reject) => {
    redis.once("ready", resolve);
    redis.once("error", reject);
  });
  return redis;
}

/** Another connection to the same Redis, for one that listens; it ends with the first one. */
export function openListener(redis: Redis): Redis {
  // Whoever listens subscribes at every new connection, so that nothing has to be known of the one before.
  const listener = redis.duplicate({
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    ...readOnlyOptions(),
  });
  // The other connection says it already.
  listener.on("error", () => {});
  redis.setMaxListeners(redis.getMaxListeners() + 1);
  redis.once("end", () => listener.disconnect());
  keepAsking(listener);
  return listener;
}

/** Runs a script by its digest; Redis keeps scripts in memory only, and after a restart has to be told again. */
export async function runScript(
  redis: Pick<Redis, "evalsha" | "eval">,
  { text, sha }: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(sha, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
    return redis.eval(text, keys.length, ...keys, ...args);
  }
}

/** Lua over its keys. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

export function script(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
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

/** A server that was made a replica cannot be written to; its name, or the Sentinels, may know its successor. */
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

function keepAsking(redis: Redis): void {
  const timer = setInterval(() => {
    if (redis.status === "ready") redis.ping().catch(() => {});
  }, PING_MS);
  timer.unref();
  redis.once("end", () => clearInterval(timer));
}
