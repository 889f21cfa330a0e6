import { connect, ping } from "../db/client.ts";
import { PoolWatches } from "../db/pool-watch.ts";
import { driverError } from "../db/driver.ts";
import { isPoolerFound } from "../db/errors.ts";
import { LIMITS } from "../db/limits.ts";
import { schemaError } from "../db/migrate.ts";
import { serverTime, writable } from "../db/server.ts";
import { createApp } from "./app.ts";
import { openKeyRing } from "./auth/key-ring.ts";
import { apiMetrics } from "./http/metrics.ts";
import { createRateLimiter } from "./http/rate-limit.ts";
import { systemClock } from "./lib/clock.ts";
import {
  configOrExit,
  exitIfFaulty,
  listenOrExit,
  reachableOrExit,
  stopSignal,
  unsuitableRedis,
} from "./lib/lifecycle.ts";
import { createLog } from "./lib/log.ts";
import { createProcessMetrics, serveOperations } from "./lib/metrics-server.ts";
import { createPasswords } from "./lib/password.ts";
import { PostgresClock } from "./lib/postgres-clock.ts";
import { readinessOf } from "./lib/readiness.ts";
import { openRedis } from "./lib/redis.ts";
import { createSecretBox } from "./lib/secret-box.ts";
import { openSpans } from "./lib/spans.ts";
import { MasterKeyWatch } from "./master-key.ts";
import { RequestTraces } from "./outbox/request-traces.ts";
import { createWriterPool } from "./outbox/writer-pool.ts";
import { createSchedule, probeRedis, refuseCluster } from "./outbox/schedule.ts";

/** Time in seconds after which an idle database connection that is needed only occasionally is closed. */
const IDLE_S = 30;
/**
 * Time in ms that running requests have to end when the process stops. Idle kept-alive connections do not delay the
 * stop.
 */
const DRAIN_MS = 4_000;

exitIfFaulty(driverError());
const config = configOrExit();
const log = createLog({ level: config.logLevel, role: "api", clock: systemClock });
const stop = stopSignal(config.parentPid, config.drainDelayMs);
/** Aborts when the drain delay is over, because load balancers have stopped sending requests by then. */
const closing = new AbortController();

const watches = new PoolWatches(config.slowStatementMs, (slow) => log.warn("statement.slow", slow));

// Each kind of work has a separate connection pool, so that waiting work in one pool does not delay the others.
const db = connect(config.databaseUrl, {
  max: config.connections.api,
  name: "reviewrelay-api",
  watches,
  limits: LIMITS.requests,
});
const writerDb = connect(config.databaseUrl, {
  max: config.connections.writerPool,
  name: "reviewrelay-writer",
  watches,
  limits: LIMITS.writerPool,
  isPipelined: true,
});
const readinessDb = connect(config.databaseUrl, {
  max: 1,
  name: "reviewrelay-ready",
  watches,
  limits: LIMITS.readiness,
  idleS: IDLE_S,
});
const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
const masterKeys = new MasterKeyWatch({ db, box, clock: systemClock, log, role: "api" });
const { clock, keys } = await reachableOrExit(
  "DATABASE_URL",
  async () => {
    await ping(db);
    exitIfFaulty(await schemaError(db));
    await masterKeys.begin();
    const time = await PostgresClock.open({
      machine: systemClock,
      log,
      ask: () => serverTime(db),
    });
    return { clock: time, keys: await openKeyRing({ db, box, clock: time, log, config }) };
  },
  { clock: systemClock, isFatal: isPoolerFound },
);
void clock.follow(stop);
masterKeys.run();
const writerPool = createWriterPool(writerDb, clock, {
  // One connection of the writer pool is reserved for batches, so that transactions that wait for a lock never delay
  // batches.
  connections: Math.max(config.connections.writerPool - 1, 1),
  share: Math.ceil(config.connections.writerPool / 3),
  waitMs: LIMITS.writerPool.deadlineMs,
});
const redis = openRedis(config.redisUrl, log);
refuseCluster(redis, config.redisPrefix, unsuitableRedis);
void keys.watch(stop);

const checks = {
  postgres: writable(readinessDb),
  master_key: () => masterKeys.check(),
  redis: () => probeRedis(redis, config.redisPrefix),
};
const passwords = createPasswords();
const limiter = config.rateLimits
  ? createRateLimiter({ redis, prefix: config.redisPrefix, clock, log, limits: config.rateLimit })
  : undefined;
const clockSkewMs = () => clock.skewMs;
const isDraining = () => stop.aborted;
const metrics = createProcessMetrics({
  clock,
  checks,
  clockSkewMs,
  pools: watches.pools,
});
const spans = config.traces && (await openSpans(config.traces, "api", clock));
const traces = spans && new RequestTraces(spans);
const schedule = createSchedule(redis, config.redisPrefix, log);
const app = createApp({
  config,
  db,
  writerPool: traces?.writerPool(writerPool) ?? writerPool,
  traces,
  clock,
  log,
  box,
  keys,
  passwords,
  schedule: traces?.waker(schedule) ?? schedule,
  checks,
  limiter,
  clockSkewMs,
  isDraining,
  stopping: closing.signal,
  ...apiMetrics(metrics, { passwords, limiter }),
});
if (config.metricsPort !== undefined) {
  const at = { host: config.metricsHost, port: config.metricsPort };
  const readiness = () => readinessOf({ clock, log, checks, clockSkewMs, isDraining });
  listenOrExit("METRICS_PORT", at, () => serveOperations({ metrics, readiness }, at));
}
// `reusePort` is off, because a second process on the same port would silently take a part of the connections.
listenOrExit("PORT", config, () =>
  app.listen({ port: config.port, hostname: config.host, reusePort: false }),
);
log.info("api.started", { pid: process.pid, server_root: config.serverRoot });

stop.addEventListener("abort", () => void drain());
if (stop.aborted) void drain();

async function drain(): Promise<void> {
  if (config.drainDelayMs > 0) {
    log.info("api.draining", { delay_ms: config.drainDelayMs });
    await clock.sleep(config.drainDelayMs);
  }
  closing.abort();
  await Promise.race([app.server?.stop(), clock.sleep(DRAIN_MS)]);
  await app.stop(true);
  await spans?.close();
  redis.disconnect();
  await masterKeys.close();
  await Promise.all([db.close(), writerDb.close(), readinessDb.close()]);
  log.info("api.stopped");
  process.exit(0);
}
