import { connect, ping } from "../db/client.ts";
import { serverTime } from "../db/server-time.ts";
import { systemClock } from "../src/lib/clock.ts";
import { collectWhenIdle, processMemory } from "../src/lib/idle-memory.ts";
import {
  configOrExit,
  reachableOrExit,
  stopSignal,
  unreachable,
  unsuitableRedis,
} from "../src/lib/lifecycle.ts";
import { createLog } from "../src/lib/log.ts";
import { createProcessMetrics, serveMetrics } from "../src/lib/metrics-server.ts";
import { PostgresClock } from "../src/lib/postgres-clock.ts";
import { openRedis } from "../src/lib/redis.ts";
import { createSecretBox } from "../src/lib/secret-box.ts";
import { masterKeyOrExit } from "../src/outbox/master-key.ts";
import { createSchedule, probeRedis, refuseCluster } from "../src/outbox/schedule.ts";
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
/** Renewals wait for nothing else: they have a connection of their own. */
const LEASE_CONNECTIONS = 1;

const config = configOrExit();
const log = createLog({ level: config.logLevel, role: "dispatcher", clock: systemClock });
const stop = stopSignal(config.parentPid);

const db = connect(config.databaseUrl, { max: CONNECTIONS, name: "reviewrelay-dispatcher" });
const leaseDb = connect(config.databaseUrl, {
  max: LEASE_CONNECTIONS,
  name: "reviewrelay-dispatcher-lease",
});
await reachableOrExit("DATABASE_URL", () => ping(db), systemClock);
const clock = await PostgresClock.open({ machine: systemClock, log, ask: () => serverTime(db) });
const redis = openRedis(config.redisUrl, log, () =>
  unreachable("REDIS_URL", "no connection for a minute."),
);
refuseCluster(redis, config.redisPrefix, unsuitableRedis);
const box = createSecretBox({ current: config.masterKey, previous: config.masterKeyPrevious });
await masterKeyOrExit(db, box);
const client = new HttpClient({
  policy: config.egress,
  timeoutMs: config.deliveryTimeoutMs,
  ca: config.webhookCa,
  proxy: config.webhookProxy,
});

const transport =
  config.smtpUrl === undefined
    ? undefined
    : createMailTransport({ url: config.smtpUrl, from: config.mailFrom, clock });

const metrics = createProcessMetrics({
  clock,
  stores: { postgres: () => ping(db), redis: () => probeRedis(redis, config.redisPrefix) },
  clockSkewMs: () => clock.skewMs,
});
const measured = new DispatcherMetrics(metrics, clock);
const dispatcher = new Dispatcher({
  clock,
  log,
  schedule: createSchedule(redis, config.redisPrefix, log),
  leases: createLeases(db, leaseDb),
  store: measured.store(createStore({ db, clock, box, log, config })),
  deliver: measured.deliver(createDeliver({ clock, client })),
  retryDelaysMs: config.retryDelaysMs,
  mail: {
    store: measured.mailStore(createMailStore({ db, box })),
    transport,
    retryDelaysMs: MAIL_RETRY_DELAYS_MS,
  },
  newUlid: createUlids(),
});

measured.watch(dispatcher);
if (config.metricsPort !== undefined) serveMetrics(metrics, config.metricsPort);

const isIdle = () => dispatcher.workload.actors === 0 && client.counts().open === 0;
void collectWhenIdle({ clock, memory: processMemory, isIdle }, stop);
const mayKeep = () => clock.agrees;
void keepHouse({ db, clock, log, mayKeep, retentionDays: config.retentionDays }, stop);
log.info("dispatcher.started", { pid: process.pid });
await dispatcher.run(stop);
client.close();
transport?.close();
redis.disconnect();
await Promise.all([db.close(), leaseDb.close()]);
log.info("dispatcher.stopped");
process.exit(0);
