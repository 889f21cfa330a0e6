// `bun run bench dispatch` measures the dispatcher end to end, with durable stores and a record of every attempt, and
// compares it with a bare fetch loop that sends the same POSTs in the same run. Only the ratios are meaningful;
// absolute figures depend on the machine.

import { join } from "node:path";

import { recordActions } from "../../src/outbox/queries.ts";
import {
  actionOf,
  dropSubscriptions,
  insertBacklog,
  insertPlace,
  type Place,
  unsettled,
} from "./events.ts";
import { perDelivery, quantile, round } from "./figures.ts";
import {
  type BenchSubscription,
  cpuMs,
  hostsOf,
  memoryOf,
  type Rig,
  startRig,
  until,
  writeResult,
} from "./rig.ts";

const results: Record<string, unknown> = {};
const only = process.argv.slice(2).filter((one) => !one.startsWith("-"));
const wants = (name: string) => only.length === 0 || only.includes(name);
const say = (text: string) => console.log(text);

say("Starting durable stores and the receivers …");
const rig = await startRig();
try {
  const place = await insertPlace(rig.db);
  if (wants("throughput")) results["throughput"] = await throughputs(place);
  if (wants("latency")) results["latency"] = await latency(rig, place);
  if (wants("retries")) results["retries"] = await retryLateness(rig, place);
  if (wants("isolation")) results["isolation"] = await isolation(rig, place);
  if (wants("idle")) results["idle"] = await idleMemory(rig, place);
  say(`\nWritten to ${writeResult("dispatch", results)}`);
} finally {
  await rig.stop();
}
process.exit(0);

// ------------------------------------------------------------------------------------------------ latency

/** Writes events at a fixed rate, as the API does, and compares the commit with the arrival. */
async function offer(
  place: Place,
  subscriptions: readonly BenchSubscription[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<Map<string, number>> {
  const commits = new Map<string, number>();
  const startedAt = performance.now();
  const pending: Promise<void>[] = [];
  for (let n = 0; n < perSecond * seconds; n++) {
    const due = startedAt + (n * 1000) / perSecond;
    if (due > performance.now()) await Bun.sleep(due - performance.now());
    const subscription = subscriptions[n % subscriptions.length];
    if (subscription === undefined) break;
    const action = actionOf(place, subscription);
    pending.push(
      rig.db
        .transaction((tx) => recordActions(tx, [action], new Date()))
        .then((wakes) => {
          commits.set(action.eventId, performance.timeOrigin + performance.now());
          return rig.schedule.wake(wakes);
        }),
    );
  }
  await Promise.all(pending);
  return commits;
}

async function latency({ sink, subscribe, startDispatcher }: Rig, place: Place) {
  const subscriptions = await subscribe(hostsOf(sink.port, 20));
  const dispatcher = await startDispatcher();
  await offer(place, subscriptions, { perSecond: 200, seconds: 2 });
  await sink.reset();
  const commits = await offer(place, subscriptions, { perSecond: 200, seconds: 10 });
  await until("all delivered", async () => (await unsettled(rig.db)) === 0);
  const { arrivals } = await sink.report();
  const waits = arrivals.map(([id, , , at]) => at - (commits.get(id) ?? at));
  dispatcher.kill("SIGTERM");
  await until("the dispatcher gone", async () => dispatcher.exitCode !== null);
  await dropSubscriptions(rig.db, subscriptions);
  const row = {
    perSecond: 200,
    p50Ms: quantile(waits, 0.5),
    p99Ms: quantile(waits, 0.99),
    maxMs: quantile(waits, 1),
  };
  say(`Commit to receipt at 200/s: p50 ${row.p50Ms} ms, p99 ${row.p99Ms} ms`);
  return row;
}

// ------------------------------------------------------------------------------------------------ retries

async function retryLateness(
  { db, schedule, sink, subscribe, startDispatcher }: Rig,
  place: Place,
) {
  const delayMs = 2_000;
  const subscriptions = await subscribe(hostsOf(sink.port, 1_000));
  const dispatcher = await startDispatcher({ RETRY_DELAYS_MS: `${delayMs},${delayMs},${delayMs}` });
  await sink.reset({ failFirst: true });
  await insertBacklog(db, place, subscriptions, 1);
  await schedule.wake(subscriptions);
  await until("all retried", async () => (await unsettled(rig.db)) === 0);
  const rows = await db.sql<{ late: number }[]>`
    select extract(epoch from second.started_at - first.next_attempt_at)::float8 * 1000 as late
      from delivery_attempts first
      join delivery_attempts second on second.subscription_id = first.subscription_id and second.event_id = first.event_id
       and second.attempt = 2
     where first.attempt = 1 and first.outcome = 'retry'
       and first.subscription_id = any(${subscriptions.map((one) => one.subscriptionId)}::text[])`;
  dispatcher.kill("SIGTERM");
  await until("the dispatcher gone", async () => dispatcher.exitCode !== null);
  await dropSubscriptions(rig.db, subscriptions);
  const late = rows.map((row) => row.late);
  const row = {
    retries: late.length,
    early: late.filter((ms) => ms < 0).length,
    p50Ms: quantile(late, 0.5),
    p99Ms: quantile(late, 0.99),
  };
  say(
    `${row.retries} retries: ${row.early} early, late by p50 ${row.p50Ms} ms, p99 ${row.p99Ms} ms`,
  );
  return row;
}

// ------------------------------------------------------------------------------------------------ isolation

/** Measures the healthy half of 100 receivers, first alone and then while the other 50 hang until the deadline. */
async function isolation({ sink, subscribe, startDispatcher }: Rig, place: Place) {
  const urls = hostsOf(sink.port, 100);
  const subscriptions = await subscribe(urls);
  const dispatcher = await startDispatcher();
  const healthy = subscriptions.slice(0, 50);
  const hanging = new Set(urls.slice(50).map((url) => new URL(url).hostname));
  await offer(place, healthy, { perSecond: 100, seconds: 2 });
  const measure = async (into: readonly BenchSubscription[], perSecond: number) => {
    await sink.reset({ hang: [...hanging] });
    const commits = await offer(place, into, { perSecond, seconds: 20 });
    await Bun.sleep(500);
    const { arrivals } = await sink.report();
    const mine = arrivals.filter(([, , host]) => !hanging.has(host));
    return quantile(
      mine.map(([id, , , at]) => at - (commits.get(id) ?? at)),
      0.95,
    );
  };
  const memoryBefore = memoryOf(dispatcher.pid) ?? 0;
  const baseline = await measure(healthy, 100);
  const withHanging = await measure(subscriptions, 200);
  const growth = (memoryOf(dispatcher.pid) ?? 0) - memoryBefore;
  dispatcher.kill("SIGKILL");
  await until("the dispatcher gone", async () => dispatcher.signalCode !== null);
  await rig.db.sql`delete from outbox`;
  await rig.db.sql`delete from dispatchers`;
  await dropSubscriptions(rig.db, subscriptions);
  const row = {
    baselineP95Ms: baseline,
    withHangingP95Ms: withHanging,
    ratio: round(withHanging / baseline, 2),
    memoryGrowthMb: round(growth / 1e6, 1),
  };
  say(
    `Healthy p95: ${baseline} ms alone, ${withHanging} ms beside 50 hanging receivers: ratio ${row.ratio}; memory +${row.memoryGrowthMb} MB`,
  );
  return row;
}

// ------------------------------------------------------------------------------------------------ idle

/** Measures the memory of a dispatcher whose subscriptions each had an event and are now idle. */
async function idleMemory({ db, schedule, sink, subscribe, startDispatcher }: Rig, place: Place) {
  const rows: { subscriptions: number; memoryMb: number | undefined }[] = [];
  const all: BenchSubscription[] = [];
  const dispatcher = await startDispatcher();
  for (const count of [10_000, 100_000]) {
    while (all.length < count) {
      const fresh = await subscribe(
        hostsOf(sink.port, 200).flatMap((url) => Array.from({ length: 50 }, () => url)),
      );
      await insertBacklog(db, place, fresh, 1);
      for (let from = 0; from < fresh.length; from += 1_000)
        await schedule.wake(fresh.slice(from, from + 1_000));
      await until("delivered", async () => (await unsettled(rig.db)) === 0);
      all.push(...fresh);
    }
    await Bun.sleep(10_000);
    const bytes = memoryOf(dispatcher.pid);
    rows.push({
      subscriptions: count,
      memoryMb: bytes === undefined ? undefined : round(bytes / 1e6, 1),
    });
    say(`${count} idle subscriptions: ${rows.at(-1)?.memoryMb} MB`);
  }
  dispatcher.kill("SIGTERM");
  await until("the dispatcher gone", async () => dispatcher.exitCode !== null);
  return rows;
}

// ------------------------------------------------------------------------------------------------ throughput

interface Throughput {
  readonly subscriptions: number;
  readonly scheme: string;
  readonly deliveries: number;
  readonly perSecond: number;
  readonly fetchPerSecond: number;
  readonly ratio: number;
  readonly dispatcherCpuUs: number | undefined;
  readonly postgresCpuUs: number | undefined;
  readonly fetchCpuUs: number;
}

async function throughputs(place: Place): Promise<Throughput[]> {
  // Each case takes about ten seconds, so that JIT compilation in a young process hardly counts.
  const cases: [count: number, each: number, scheme: "http" | "https"][] = [
    [1, 60_000, "http"],
    [100, 2_000, "http"],
    [2_000, 80, "http"],
    [100, 2_000, "https"],
  ];
  const rows: Throughput[] = [];
  for (const [count, each, scheme] of cases) {
    const port = scheme === "http" ? rig.sink.port : rig.sink.tlsPort;
    if (port === undefined) console.log("https is left out: openssl is not on this machine.");
    else rows.push(await throughput(place, { urls: hostsOf(port, count, scheme), each, scheme }));
  }
  return rows;
}

async function throughput(
  place: Place,
  { urls, each, scheme }: { urls: string[]; each: number; scheme: string },
): Promise<Throughput> {
  const { db, schedule, sink, startDispatcher, subscribe, postgresCpuMs } = rig;
  const deliveries = urls.length * each;
  await sink.reset();
  // The bare loop runs half before and half after, because the speed of the machine varies.
  const bareBefore = await fetchLoop(deliveries / 2, urls);
  const subscriptions = await subscribe(urls);
  const dispatcher = await startDispatcher();
  // The first entry of each subscription warms up connections and statements; it does not count.
  await insertBacklog(db, place, subscriptions, 1);
  await schedule.wake(subscriptions);
  await until("warm", async () => (await unsettled(db)) === 0);
  // All entries are appended before the clock starts, because the bare loop appends nothing either.
  await insertBacklog(db, place, subscriptions, each);
  await db.sql`checkpoint`;
  await sink.reset();
  const before = { dispatcher: cpuMs(dispatcher.pid), postgres: postgresCpuMs() };
  const startedAt = performance.now();
  await schedule.wake(subscriptions);
  await until("all delivered", async () => (await unsettled(db)) === 0, 20);
  const seconds = (performance.now() - startedAt) / 1000;
  const after = { dispatcher: cpuMs(dispatcher.pid), postgres: postgresCpuMs() };
  const { count } = await sink.report();
  dispatcher.kill("SIGTERM");
  await until("the dispatcher gone", async () => dispatcher.exitCode !== null);
  await dropSubscriptions(db, subscriptions);
  const bareAfter = await fetchLoop(deliveries / 2, urls);
  const fetchPerSecond =
    (bareBefore.deliveries + bareAfter.deliveries) / (bareBefore.seconds + bareAfter.seconds);
  const row: Throughput = {
    subscriptions: urls.length,
    scheme,
    deliveries: count,
    perSecond: round(deliveries / seconds),
    fetchPerSecond: round(fetchPerSecond),
    ratio: round(deliveries / seconds / fetchPerSecond, 2),
    dispatcherCpuUs: perDelivery(before.dispatcher, after.dispatcher, deliveries),
    postgresCpuUs: perDelivery(before.postgres, after.postgres, deliveries),
    fetchCpuUs: round((bareBefore.cpuUs + bareAfter.cpuUs) / 2, 1),
  };
  console.log(
    `${String(row.subscriptions).padStart(6)} subscriptions ${scheme.padEnd(5)}  ${row.perSecond}/s, fetch ${row.fetchPerSecond}/s: ratio ${row.ratio}` +
      `   CPU per delivery: dispatcher ${row.dispatcherCpuUs} µs, Postgres ${row.postgresCpuUs} µs, fetch ${row.fetchCpuUs} µs`,
  );
  return row;
}

/**
 * Runs the fetch loop asynchronously: `spawnSync` would block this process, and its connection to Redis would time
 * out.
 */
async function fetchLoop(
  deliveries: number,
  urls: readonly string[],
): Promise<{ deliveries: number; seconds: number; cpuUs: number }> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "fetch-loop.ts"), String(deliveries), ...urls],
    {
      stdin: "ignore",
      stderr: "inherit",
      env: {
        ...process.env,
        NODE_TLS_REJECT_UNAUTHORIZED: "0",
        BUN_CONFIG_MAX_HTTP_REQUESTS: "4096",
      },
    },
  );
  const printed = await child.stdout.text();
  const status = await child.exited;
  if (status !== 0) throw new Error(`The bare loop ended with ${status}.`);
  return JSON.parse(printed.trim().split("\n").at(-1) ?? "");
}
