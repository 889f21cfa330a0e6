import { poolsOf } from "../db/pools.ts";
import { collectWhenCrowded, collectWhenIdle, processMemory } from "../src/lib/idle-memory.ts";
import { stopSignal } from "../src/lib/lifecycle.ts";
import { openSpans } from "../src/lib/spans.ts";
import { AuditForwarder, LONGEST_PAUSE_MS } from "../src/audit/webhook.ts";
import { purgeChunk } from "../src/auth/purge.ts";
import { emailsChunk } from "../src/auth/passwords/email-queries.ts";
import { deletionChunk } from "../src/tenants/actions/delete-companies.ts";
import { eraseChunk } from "../src/tenants/actions/erase.ts";
import { providerSecretsChunk } from "../src/tenants/actions/stores.ts";
import { createSchedule } from "../src/outbox/schedule.ts";
import { EXIT_CONFIG } from "../src/lib/config.ts";
import { beginProcess, openOperations, openStores, poolOpener } from "../src/process.ts";
import { countStats, healthSummaryOf } from "../src/webhooks/actions/stats.ts";
import { troubleSince } from "../src/webhooks/queries/incidents.ts";
import {
  budgetOf,
  countDescriptors,
  MIN_DESCRIPTORS,
  WANTED_DESCRIPTORS,
} from "./delivery/limits.ts";
import { alertsJob } from "./alerts/detect.ts";
import { checksJob } from "./delivery/check.ts";
import { createDeliver } from "./delivery/deliver.ts";
import { Reach } from "./delivery/reach.ts";
import { Dispatcher } from "./dispatcher.ts";
import { HttpClient } from "./http/client.ts";
import { createLeases } from "./shards/lease-queries.ts";
import { MAIL_RETRY_DELAYS_MS } from "./mail/decide.ts";
import { Mailer } from "./mail/mailer.ts";
import { createMailStore } from "./mail/queries.ts";
import { createMailTransport } from "./mail/transport.ts";
import { bringDueTimesBack } from "./due-time-queries.ts";
import { hourlyJobs } from "./maintenance/jobs.ts";
import { endLost, type Job, Maintenance } from "./maintenance/loop.ts";
import { readFigures } from "./maintenance/queries.ts";
import { DispatcherTelemetry } from "./telemetry.ts";
import { createStore } from "./store/store.ts";
import { createUlids } from "./store/ulids.ts";

/** The idle time in seconds after which a connection to PostgreSQL is closed. */
const IDLE_S = 30;
/**
 * The shorter idle time in seconds for PostgreSQL connections of maintenance, because another dispatcher may make the
 * next run.
 */
const JOB_IDLE_S = 5;

const base = beginProcess("dispatcher");
const { config, log, box } = base;
const descriptors = countDescriptors();
const budget = budgetOf(descriptors);
if (budget === undefined) {
  const bounds = `at least ${MIN_DESCRIPTORS}, better ${WANTED_DESCRIPTORS}`;
  console.error(`ulimit -n is ${descriptors}: a dispatcher needs ${bounds}.`);
  process.exit(EXIT_CONFIG);
}
if (descriptors < WANTED_DESCRIPTORS)
  log.warn("descriptors.low", {
    descriptors,
    wanted: WANTED_DESCRIPTORS,
    requests: 2 * budget.limits.requests,
  });
const stop = stopSignal(config.parentPid);

const poolSizes = poolsOf(config.connections);
const poolLimits = { ...poolSizes.dispatcher, ...poolSizes.maintenance };
const open = poolOpener(base, poolLimits);
const db = open("dispatcher", "dispatch");
const maintenanceOptions = { idleS: JOB_IDLE_S, url: config.maintenanceDatabaseUrl };
/** One PostgreSQL connection pool for each kind of work that must not wait for another kind. */
const pools = {
  db,
  renewals: open("renewals", "leases"),
  leases: poolLimits.leases === 0 ? db : open("leases", "leases"),
  readiness: poolLimits.ready === 0 ? db : open("ready", "readiness", { idleS: IDLE_S }),
  // The connections of these two pools are open only while this process runs a maintenance job that uses them.
  maintenance: open("maintenance", "maintenance", maintenanceOptions),
  indexing: open("indexing", "indexing", maintenanceOptions),
};
const stores = await openStores(base, db);
const { clock, redis } = stores;
const openClient = (maxIdle: number) =>
  new HttpClient({
    policy: config.egress,
    timeoutMs: config.deliveryTimeoutMs,
    ca: config.webhookCa,
    proxy: config.webhookProxy,
    maxIdle,
  });
const client = openClient(budget.maxIdle);

const { smtpUrl, mailFrom: from } = config;
const transport = smtpUrl === undefined ? undefined : createMailTransport({ url: smtpUrl, from });
if (transport === undefined) log.warn("mail.unconfigured", { setting: "SMTP_URL" });

const isDraining = () => stop.aborted;
const operations = openOperations(base, stores, { readinessDb: pools.readiness, isDraining });
const spans = config.traces && (await openSpans(config.traces, "dispatcher", clock));
const telemetry = new DispatcherTelemetry(operations.metrics, clock, spans);
const shared = { db, clock, log, box };
const store = createStore({ ...shared, config });
const deliver = createDeliver({ clock, client });
const reach = new Reach();
const schedule = createSchedule(redis, config.redisPrefix, log);
const newUlid = createUlids();
const dispatcher = new Dispatcher({
  clock,
  log,
  schedule,
  leases: createLeases(pools.leases, pools.renewals),
  store: telemetry.store(store),
  deliver: telemetry.deliver(deliver),
  reach,
  retryDelaysMs: config.retryDelaysMs,
  mailer:
    transport &&
    new Mailer({
      ...shared,
      store: createMailStore(db),
      transport,
      retryDelaysMs: MAIL_RETRY_DELAYS_MS,
    }),
  newUlid,
  limits: budget.limits,
});

const ownerDb = pools.maintenance;
const auditForwarder = new AuditForwarder({ ...shared, deliver });
const eachMinute = { paceS: 60, db: ownerDb };
const dueTimes = { ...config, auditPauseMs: LONGEST_PAUSE_MS };
const jobs: Job[] = [
  alertsJob(
    {
      ...config,
      ...shared,
      config,
      schedule,
      deliver,
      reach,
      healthSummaryOf: (one) => healthSummaryOf(shared, one),
      troubleSince,
    },
    stop,
  ),
  { ...eachMinute, name: "stats", run: () => countStats({ db: ownerDb, config }) },
  { ...eachMinute, name: "credentials", run: () => purgeChunk({ db: ownerDb, config }) },
  { ...eachMinute, name: "emails", run: () => emailsChunk(ownerDb) },
  { ...eachMinute, name: "erasures", paceS: 5, run: () => eraseChunk({ ...shared, db: ownerDb }) },
  { ...eachMinute, name: "provider_secrets", run: () => providerSecretsChunk({ db: ownerDb }) },
  { ...eachMinute, name: "deletions", run: () => deletionChunk({ db: ownerDb, clock, log }) },
  {
    ...eachMinute,
    name: "due_times",
    anyClock: true,
    run: ({ reached }) => bringDueTimesBack({ db: ownerDb, config: dueTimes, log }, reached),
  },
  { name: "audit_webhook", paceS: 5, run: () => auditForwarder.chunk() },
  checksJob({ ...shared, reach, openClient: () => openClient(0), newUlid }, stop),
  ...hourlyJobs({ ...config, db: ownerDb, indexDb: pools.indexing, log }),
];
// The maintenance loop terminates only the lost sessions of the service's own database user. This job terminates those
// of a separate database user of maintenance.
if (config.maintenanceDatabaseUrl !== config.databaseUrl)
  jobs.push({
    ...eachMinute,
    name: "lost_sessions",
    anyClock: true,
    run: () => endLost(ownerDb, log),
  });
const maintenance = new Maintenance(
  { db, clock, log, jobs, clocksAgree: () => clock.agrees },
  stop,
);
telemetry.watch(dispatcher);
const jobNames = jobs.map(({ name }) => name);
telemetry.figures(() => readFigures(pools.readiness, jobNames));
operations.serve();

const isIdle = () => dispatcher.workload.actors === 0 && client.counts().open === 0;
void collectWhenIdle({ clock, memory: processMemory, isIdle }, stop);
const isOverloaded = () => {
  const { waiting, bytes } = dispatcher.workload;
  return waiting > budget.limits.actors || bytes > budget.limits.bytes / 6;
};
void collectWhenCrowded({ clock, memory: processMemory, isCrowded: isOverloaded }, stop);
const maintaining = maintenance.run();
log.info("dispatcher.started", { pid: process.pid });
await dispatcher.run(stop);
await maintaining;
await spans?.close();
client.close();
transport?.close();
redis.disconnect();
await stores.masterKeys.close();
await Promise.all([...new Set(Object.values(pools))].map((pool) => pool.close()));
log.info("dispatcher.stopped");
process.exit(0);
