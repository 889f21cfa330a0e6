import { LIMITS } from "../db/limits.ts";
import { poolsOf } from "../db/pools.ts";
import { createApp } from "./app.ts";
import { FailureAudit } from "./auth/audit-failures.ts";
import { openKeyRing } from "./auth/key-ring.ts";
import { IDLE_TIMEOUT_S } from "./http/edge.ts";
import { apiMetrics } from "./http/metrics.ts";
import { createRateLimiter } from "./http/rate-limit.ts";
import { dropNewConnections } from "./lib/last-connections.ts";
import { listenOrExit, stopSignal } from "./lib/lifecycle.ts";
import { errorFields } from "./lib/log.ts";
import { createPasswords } from "./lib/password.ts";
import { followInbox } from "./intake/inbox.ts";
import { openSpans } from "./lib/spans.ts";
import { RequestTraces } from "./outbox/request-traces.ts";
import { createWriterPool } from "./outbox/writer-pool.ts";
import { BackgroundWaker, createSchedule } from "./outbox/schedule.ts";
import {
  beginProcess,
  openOperations,
  openStores,
  poolOpener,
  untilDatabaseAnswers,
} from "./process.ts";

/** Time in seconds after which an idle database connection that is needed only occasionally is closed. */
const IDLE_S = 30;
/**
 * Time in ms that running requests have to end when the process stops. Idle kept-alive connections do not delay the
 * stop.
 */
const DRAIN_MS = 4_000;
/**
 * Time in ms from the last new connection to the end of the listener. A proxy sends its request as soon as it is
 * connected, and this process reads it within that time.
 */
const LAST_CONNECTIONS_MS = 500;

const base = beginProcess("api");
const { config, log, box } = base;
const stop = stopSignal(config.parentPid, config.drainDelayMs);
/** Aborts when the drain delay is over, because load balancers have stopped sending requests by then. */
const closing = new AbortController();

// Each kind of work has a separate connection pool, so that waiting work in one pool does not delay the others.
const open = poolOpener(base, poolsOf(config.connections).api);
const db = open("api", "requests");
const writerDb = open("writer", "writerPool", { isPipelined: true });
const readinessDb = open("ready", "readiness", { idleS: IDLE_S });
const stores = await openStores(base, db);
const { clock, redis } = stores;
const keys = await untilDatabaseAnswers(() => openKeyRing({ db, box, clock, log, config }));
void clock.follow(stop);
const writerPool = createWriterPool(writerDb, clock, {
  // Two connections of the writer pool are reserved for the batches of provider events and of actions, so that
  // transactions that wait for a lock never delay them.
  connections: Math.max(config.connections.writerPool - 2, 1),
  share: Math.ceil(config.connections.writerPool / 3),
  waitMs: LIMITS.writerPool.deadlineMs,
});
void keys.watch(stop);

const isDraining = () => stop.aborted;
const operations = openOperations(base, stores, { readinessDb, isDraining });
const passwords = createPasswords();
const limiter = config.rateLimits
  ? createRateLimiter({ redis, prefix: config.redisPrefix, clock, log, limits: config.rateLimit })
  : undefined;
const spans = config.traces && (await openSpans(config.traces, "api", clock));
const traces = spans && new RequestTraces(spans);
const direct = createSchedule(redis, config.redisPrefix, log);
const schedule = new BackgroundWaker(traces?.waker(direct) ?? direct, log);
const { countInbox, ...counters } = apiMetrics(operations.metrics, { passwords, limiter });
const failures = new FailureAudit({ db, clock, log });
void failures.follow(stop);
const app = createApp({
  config,
  db,
  writerPool: traces?.writerPool(writerPool) ?? writerPool,
  traces,
  clock,
  log,
  box,
  failures,
  keys,
  passwords,
  schedule,
  checks: operations.checks,
  limiter,
  clockSkewMs: operations.clockSkewMs,
  isDraining,
  stopping: closing.signal,
  ...counters,
});
void followInbox({ db, clock, writerPool, box, schedule, log, countInbox }, stop);
operations.serve();
// `reusePort` is off, because a second process on the same port would silently take a part of the connections.
listenOrExit("PORT", config, () =>
  app.listen({
    port: config.port,
    hostname: config.host,
    reusePort: false,
    idleTimeout: IDLE_TIMEOUT_S,
  }),
);
log.info("api.started", { pid: process.pid, server_root: config.serverRoot });

stop.addEventListener("abort", () => void drain());
if (stop.aborted) void drain();

async function drain(): Promise<void> {
  if (config.drainDelayMs > 0) {
    log.info("api.draining", { delay_ms: config.drainDelayMs });
    await clock.sleep(config.drainDelayMs);
    if (dropNewConnections()) await clock.sleep(LAST_CONNECTIONS_MS);
  }
  closing.abort();
  await Promise.race([app.server?.stop(), clock.sleep(DRAIN_MS)]);
  await app.stop(true);
  await failures
    .flush()
    .catch((error: unknown) => log.warn("audit.counts_unwritten", errorFields(error)));
  await schedule.flush();
  await spans?.close();
  redis.disconnect();
  await stores.masterKeys.close();
  await Promise.all([db.close(), writerDb.close(), readinessDb.close()]);
  log.info("api.stopped");
  process.exit(0);
}
