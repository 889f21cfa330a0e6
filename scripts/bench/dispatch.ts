// `bun run bench dispatch`: the dispatcher end to end, with durable stores and every attempt recorded, beside a bare
// fetch loop that sends the same POSTs in the same run. The ratios are the result; the machine is whatever it is.
import { recordActions } from "../../src/outbox/queries.ts";
import {
  actionOf,
  dropSubscriptions,
  insertBacklog,
  insertPlace,
  unsettled,
  type Place,
} from "./events.ts";
import { quantile, round } from "./figures.ts";
import {
  hostsOf,
  memoryOf,
  startRig,
  until,
  writeResult,
  type BenchSubscription,
  type Rig,
} from "./rig.ts";
import { throughputs } from "./throughput.ts";

const results: Record<string, unknown> = {};
const only = process.argv.slice(2).filter((one) => !one.startsWith("-"));
const wants = (name: string) => only.length === 0 || only.includes(name);
const say = (text: string) => console.log(text);

say("Starting durable stores and the receivers …");
const rig = await startRig();
try {
  const place = await insertPlace(rig.db);
  if (wants("throughput")) results["throughput"] = await throughputs(rig, place);
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

/** The healthy half of 100 receivers, alone and then beside 50 that hang to the deadline. */
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

/** Memory of a dispatcher whose subscriptions have all had an event, and have nothing to do now. */
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
