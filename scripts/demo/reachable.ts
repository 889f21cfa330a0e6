// Waits for stores that the user has named, because they may be starting at the same time.
import Redis from "ioredis";
import postgres from "postgres";

import { type RedisSettings, sentinelOptions } from "../../src/lib/settings-reader.ts";
import { StartError } from "./start-error.ts";

const PATIENCE_MS = 20_000;
const PAUSE_MS = 1_000;
const TRY_MS = 3_000;

/** Maximum time to wait in ms, and a signal that ends the wait early. */
interface Limits {
  stop: AbortSignal;
  patienceMs?: number;
}

export function waitForPostgres(url: string, limits: Limits): Promise<void> {
  return waitFor("DATABASE_URL", url, limits, async () => {
    const sql = postgres(url, {
      max: 1,
      connect_timeout: TRY_MS / 1_000,
      onnotice: () => undefined,
    });
    try {
      await sql`select 1`;
    } finally {
      await sql.end({ timeout: 0 });
    }
  });
}

export function waitForRedis(url: string, limits: Limits): Promise<void> {
  return waitFor("REDIS_URL", url, limits, async () => {
    const options: RedisSettings = {
      lazyConnect: true,
      connectTimeout: TRY_MS,
      commandTimeout: TRY_MS,
      retryStrategy: () => null,
      sentinelRetryStrategy: () => null,
    };
    const sentinels = sentinelOptions(url);
    const redis = sentinels ? new Redis({ ...sentinels, ...options }) : new Redis(url, options);
    const failed = new Promise<never>((_, reject) => redis.once("error", reject));
    // The error event contains the reason. The failed command only reports a closed connection.
    try {
      await Promise.race([redis.connect().then(() => redis.ping()), failed]);
    } finally {
      redis.disconnect();
    }
  });
}

async function waitFor(
  name: string,
  url: string,
  { stop, patienceMs = PATIENCE_MS }: Limits,
  reach: () => Promise<void>,
): Promise<void> {
  // Removes user and password from the URL.
  const address = url.replace(/\?.*$/, "").replace(/^[^:]+:\/\/(?:.*@)?/, "");
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await reach();
    } catch (error) {
      const reason = (error instanceof Error ? error.message : "") || "no answer";
      stop.throwIfAborted();
      if (performance.now() > deadline) {
        throw new StartError(
          `${name} (${address}) is not reachable: ${reason}.`,
          `Start that server or correct ${name}. Without ${name}, an embedded server is used.`,
        );
      }
      console.log(`Waiting for ${name} (${address}): ${reason}.`);
      await Bun.sleep(PAUSE_MS);
    }
  }
}
