// Deliveries per second beside a bare fetch loop that sends the same POSTs in the same run.
import { join } from "node:path";

import { dropSubscriptions, insertBacklog, unsettled, type Place } from "./events.ts";
import { perDelivery, round } from "./figures.ts";
import { cpuMs, hostsOf, until, type Rig } from "./rig.ts";

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

export async function throughputs(rig: Rig, place: Place): Promise<Throughput[]> {
  // Each takes some ten seconds, so that what the compiler does to a young process hardly counts.
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
    else
      rows.push(await throughput(rig, place, { urls: hostsOf(port, count, scheme), each, scheme }));
  }
  return rows;
}

async function throughput(
  { db, schedule, sink, subscribe, startDispatcher, postgresCpuMs }: Rig,
  place: Place,
  { urls, each, scheme }: { urls: string[]; each: number; scheme: string },
): Promise<Throughput> {
  const deliveries = urls.length * each;
  await sink.reset();
  // The bare loop runs half before and half after, since the machine is slower at one time than at another.
  const bareBefore = await fetchLoop(deliveries / 2, urls);
  const subscriptions = await subscribe(urls);
  const dispatcher = await startDispatcher();
  // The first entry of each warms connections and statements up; it does not count.
  await insertBacklog(db, place, subscriptions, 1);
  await schedule.wake(subscriptions);
  await until("warm", async () => (await unsettled(db)) === 0);
  // All is appended before the clock starts: the bare loop has nothing to append either.
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

/** Not `spawnSync`: while this process stood still, its connection to Redis would time out. */
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
