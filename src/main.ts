import { dlopen, ptr } from "bun:ffi";
import { readdirSync } from "node:fs";

import { LIMITS } from "../db/limits.ts";
import { poolsOf } from "../db/pools.ts";
import { createApp } from "./app.ts";
import { FailureAudit } from "./audit/failures.ts";
import { openKeyRing } from "./auth/keys/key-ring.ts";
import { IDLE_TIMEOUT_S } from "./http/edge.ts";
import { apiMetrics } from "./http/metrics.ts";
import { createRateLimiter } from "./http/rate-limit.ts";
import { followInbox } from "./intake/inbox.ts";
import { listenOrExit, stopSignal } from "./lib/lifecycle.ts";
import { errorFields } from "./lib/log.ts";
import { createPasswords } from "./lib/password.ts";
import { openSpans } from "./lib/spans.ts";
import { RequestTraces } from "./outbox/request-traces.ts";
import { BackgroundWaker, createSchedule } from "./outbox/schedule.ts";
import { createWriterPool } from "./outbox/writer-pool.ts";
import {
  beginProcess,
  openOperations,
  openStores,
  poolOpener,
  untilDatabaseAnswers,
} from "./process.ts";

/** Time in s after which an idle database connection of a rarely used pool is closed. */
const IDLE_S = 30;
/**
 * Time in ms that running requests have to finish when the process stops. Idle kept-alive HTTP connections do not delay
 * the stop.
 */
const DRAIN_MS = 4_000;
/**
 * Time in ms for which the listener stays open after new TCP connections are dropped. A proxy sends its request as soon
 * as it is connected, so this process reads it within that time.
 */
const LAST_CONNECTIONS_MS = 500;

const base = beginProcess("api");
const { config, log, box } = base;
const stop = stopSignal(config.parentPid, config.drainDelayMs);
/** Ends open streams. Aborts after the drain delay, when load balancers have stopped sending requests. */
const closing = new AbortController();

// Each kind of work has a separate connection pool, so that waiting work of one kind does not delay the other kinds.
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
void followInbox({ db, clock, writerPool, box, config, schedule, log, countInbox }, stop);
operations.serve();
// `reusePort` is off, because a second process on the same port would silently receive a part of the TCP connections.
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
    .catch((error: unknown) => log.warn("audit.write_failed", errorFields(error)));
  await schedule.flush();
  await spans?.close();
  redis.disconnect();
  await stores.masterKeys.close();
  await Promise.all([db.close(), writerDb.close(), readinessDb.close()]);
  log.info("api.stopped");
  process.exit(0);
}

// Constants of Linux on x64 and arm64 (asm-generic/socket.h).
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
const INT_BYTES = 4;

/**
 * A packet filter (BPF) of four instructions. It loads the flags of the TCP header, skips the next instruction if SYN
 * is not set, drops the packet, and accepts the packet. Each instruction takes two numbers: its code and jumps, and its
 * operand.
 */
const DROP_SYN = Uint32Array.of(0x30, 13, 0x01_00_00_45, 2, 0x06, 0, 0x06, 0xffff_ffff);

/**
 * Drops the packets that open a TCP connection to a listener of this process; returns whether that worked. When a
 * listener closes, Linux resets the connections that were not accepted yet, although their clients may have sent a
 * request. A process that first drops new connections can accept all others before it closes the listener. A client
 * whose packet was dropped sends it again after a second and is then refused, so that a proxy chooses another process.
 */
function dropNewConnections(): boolean {
  if (process.platform !== "linux") return false;
  try {
    const { symbols: libc } = dlopen("libc.so.6", {
      getsockopt: { args: ["int", "int", "int", "ptr", "ptr"], returns: "int" },
      setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" },
    });
    const isListener = (fd: number) => {
      const value = new Int32Array(1);
      const length = Uint32Array.of(INT_BYTES);
      libc.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(value), ptr(length));
      return value[0] === 1;
    };
    const filter = BigUint64Array.of(BigInt(DROP_SYN.length / 2), BigInt(ptr(DROP_SYN)));
    const attach = (fd: number) =>
      libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(filter), filter.byteLength) === 0;
    return readdirSync("/proc/self/fd").map(Number).filter(isListener).every(attach);
  } catch {
    // The packets are not dropped: the C library is not glibc, or the call is not permitted.
    return false;
  }
}
