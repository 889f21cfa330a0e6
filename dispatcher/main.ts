import { connect, ping } from "../db/client.ts";
import { systemClock } from "../src/lib/clock.ts";
import { collectWhenIdle, processMemory } from "../src/lib/idle-memory.ts";
import { configOrExit, reachableOrExit, stopSignal, unreachable } from "../src/lib/lifecycle.ts";
import { createLog } from "../src/lib/log.ts";
import { createProcessMetrics, serveMetrics } from "../src/lib/metrics-server.ts";
import { openRedis } from "../src/lib/redis.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { masterKeyOrExit } from "../src/outbox/master-key.ts";
import { createSchedule } from "../src/outbox/schedule.ts";
import { EXIT_CONFIG } from "../src/lib/config.ts";
import { budgetOf, countDescriptors, MIN_DESCRIPTORS, WANTED_DESCRIPTORS } from "./descriptors.ts";
import { createDeliver } from "./delivery/deliver.ts";
import { Dispatcher } from "./dispatcher.ts";
import { HttpClient } from "./http/client.ts";
import { createLeases } from "./shards/leases.ts";
import { MAIL_RETRY_DELAYS_MS } from "./mail/decide.ts";
import { createMailStore } from "./mail/store.ts";
import { createMailTransport } from "./mail/transport.ts";
import { keepHouse } from "./upkeep/maintenance.ts";
import { DispatcherMetrics } from "./metrics.ts";
import { createStore } from "./store/store.ts";
import { createUlids } from "./store/ulids.ts";

const CONNECTIONS = 6;
/**
 * The outbox is empty at one moment and holds a backlog at the next, and a plan that was made for the one must serve
 * the other. So statements are planned once, and go by keys, never by a walk through all of a table.
 */
const PLANNER = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  // Memoizing cannot help: no two entries of a load have their event in common.
  enable_memoize: "off",
};

const config = configOrExit();
const clock = systemClock;
const log = createLog({ level: config.logLevel, role: "dispatcher", clock });
const descriptors = countDescriptors();
const budget = budgetOf(descriptors);
if (budget === undefined) {
  const bounds = `at least ${MIN_DESCRIPTORS}, better ${WANTED_DESCRIPTORS}`;
  console.error(`ulimit -n is ${descriptors}: a dispatcher needs ${bounds}.`);
  process.exit(EXIT_CONFIG);
}
if (descriptors < WANTED_DESCRIPTORS)
  log.warn("descriptors.few", {
    descriptors,
    wanted: WANTED_DESCRIPTORS,
    requests: 2 * budget.limits.requests,
  });
const stop = stopSignal(config.parentPid);

const db = connect(config.databaseUrl, {
  max: CONNECTIONS,
  name: "reviewrelay-dispatcher",
  settings: PLANNER,
});
await reachableOrExit("DATABASE_URL", () => ping(db), clock);
const redis = openRedis(config.redisUrl, log, () =>
  unreachable("REDIS_URL", "no connection for a minute."),
);
const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
await masterKeyOrExit(db, box);
const client = new HttpClient({
  policy: config.egress,
  timeoutMs: config.deliveryTimeoutMs,
  ca: config.webhookCa,
  proxy: config.webhookProxy,
  maxIdle: budget.maxIdle,
});

const transport =
  config.smtpUrl === undefined
    ? undefined
    : createMailTransport({ url: config.smtpUrl, from: config.mailFrom, clock });

const metrics = createProcessMetrics({
  clock,
  stores: { postgres: () => ping(db), redis: () => redis.ping() },
});
const measured = new DispatcherMetrics(metrics, clock);
const dispatcher = new Dispatcher({
  clock,
  log,
  schedule: createSchedule(redis, config.redisPrefix, log),
  leases: createLeases(db, log),
  store: measured.store(createStore({ db, clock, box, log, config })),
  deliver: measured.deliver(createDeliver({ clock, client })),
  retryDelaysMs: config.retryDelaysMs,
  mail: {
    store: measured.mailStore(createMailStore({ db, box })),
    transport,
    retryDelaysMs: MAIL_RETRY_DELAYS_MS,
  },
  newUlid: createUlids(),
  limits: budget.limits,
});

measured.watch(dispatcher);
if (config.metricsPort !== undefined) serveMetrics(metrics, config.metricsPort);

const isIdle = () => dispatcher.workload.actors === 0 && client.counts().open === 0;
void collectWhenIdle({ clock, memory: processMemory, isIdle }, stop);
void keepHouse({ db, clock, log, retentionDays: config.retentionDays }, stop);
log.info("dispatcher.started", { pid: process.pid });
await dispatcher.run(stop);
client.close();
transport?.close();
redis.disconnect();
await db.close();
log.info("dispatcher.stopped");
process.exit(0);
