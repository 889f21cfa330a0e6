import type { Redis } from "ioredis";

import { connect, type RawDb } from "../db/client.ts";
import { driverError } from "../db/driver.ts";
import { isPoolerFound } from "../db/errors.ts";
import { LIMITS } from "../db/limits.ts";
import { schemaError } from "../db/migrate.ts";
import { PoolWatches } from "../db/pool-watch.ts";
import { groundFault, serverTime, writable } from "../db/server.ts";
import { systemClock } from "./lib/clock.ts";
import { removedSettings } from "./lib/config.ts";
import {
  configOrExit,
  exitIfFaulty,
  listenOrExit,
  reachableOrExit,
  unsuitableRedis,
} from "./lib/lifecycle.ts";
import { createLog } from "./lib/log.ts";
import { createProcessMetrics, serveOperations } from "./lib/metrics.ts";
import { PostgresClock } from "./lib/postgres-clock.ts";
import { readinessOf } from "./lib/readiness.ts";
import { openRedis } from "./lib/redis.ts";
import { createSecretBox } from "./lib/secrets.ts";
import { MasterKeyWatch } from "./master-key.ts";
import { probeRedis, refuseCluster } from "./outbox/schedule.ts";

// The steps of the start that the API and the dispatcher share. An error in the settings, PostgreSQL or Redis ends the
// process with a message for the operator.

export type ProcessBase = ReturnType<typeof beginProcess>;

/**
 * Reads the settings, and creates the log, the metrics of the connection pools and the secret box. PostgreSQL and Redis
 * are not needed.
 */
export function beginProcess(role: "api" | "dispatcher") {
  exitIfFaulty(driverError());
  const config = configOrExit();
  const log = createLog({ level: config.logLevel, role, clock: systemClock });
  for (const setting of removedSettings()) log.warn("setting.removed", { setting });
  const watches = new PoolWatches((slow) => log.warn("statement.slow", { ...slow }));
  const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
  return { role, config, log, watches, box };
}

interface PoolOptions {
  readonly url?: string;
  readonly idleS?: number;
  readonly isPipelined?: boolean;
}

/**
 * Returns a function that opens a connection pool by its name. `sizes` contains the size of each pool (db/pools.ts).
 */
export function poolOpener<Name extends string>(
  { config, watches }: ProcessBase,
  sizes: Readonly<Record<Name, number>>,
) {
  return (
    name: Name,
    limits: keyof typeof LIMITS,
    { url = config.databaseUrl, ...more }: PoolOptions = {},
  ) => {
    const pool = { name: `reviewrelay-${name}`, max: sizes[name], limits: LIMITS[limits] };
    return connect(url, { ...pool, watches, ...more });
  };
}

/** Waits for PostgreSQL, checks its schema and the master key, and opens Redis, which may be unreachable. */
export async function openStores({ role, config, log, box }: ProcessBase, db: RawDb) {
  const masterKeys = new MasterKeyWatch({ db, box, clock: systemClock, log, role });
  const clock = await untilDatabaseAnswers(async () => {
    exitIfFaulty((await groundFault(db)) ?? (await schemaError(db)));
    await masterKeys.begin();
    return PostgresClock.open({ machine: systemClock, log, ask: () => serverTime(db) });
  });
  masterKeys.run();
  const redis = openRedis(config.redisUrl, log);
  refuseCluster(redis, config.redisPrefix, unsuitableRedis);
  return { masterKeys, clock, redis };
}

/** Repeats a request to PostgreSQL until the server answers; after 20 seconds it ends the process. */
export function untilDatabaseAnswers<T>(ask: () => Promise<T>): Promise<T> {
  return reachableOrExit("DATABASE_URL", ask, { clock: systemClock, isFatal: isPoolerFound });
}

/** Makes the checks and metrics of the process. `serve` opens their port, if there is one (contract 2.12). */
export function openOperations(
  { config, log, watches }: ProcessBase,
  { masterKeys, clock, redis }: { masterKeys: MasterKeyWatch; clock: PostgresClock; redis: Redis },
  { readinessDb, isDraining }: { readinessDb: RawDb; isDraining: () => boolean },
) {
  const checks = {
    postgres: writable(readinessDb),
    master_key: () => masterKeys.check(),
    redis: () => probeRedis(redis, config.redisPrefix),
  };
  const clockSkewMs = () => clock.skewMs;
  const metrics = createProcessMetrics({ clock, checks, clockSkewMs, pools: watches.pools });
  const readiness = () => readinessOf({ clock, log, checks, clockSkewMs, isDraining });
  const serve = () => {
    if (config.metricsPort === undefined) return;
    const at = { host: config.metricsHost, port: config.metricsPort };
    listenOrExit("METRICS_PORT", at, () => serveOperations({ metrics, readiness }, at));
  };
  return { checks, clockSkewMs, metrics, serve };
}
