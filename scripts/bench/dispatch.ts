// `bun run bench dispatch` measures the dispatcher end to end, with durable stores and a record of every attempt, and
// compares it with a bare fetch loop that sends the same POSTs in the same run. Only the ratios are meaningful;
// absolute figures depend on the machine. `bun run bench live` measures latency and isolation.
//   throughput (the default); --share N (1): N times as many POSTs; --tree PATH: the checkout that runs
//   clients: the same POSTs with the dispatcher's HTTP client and with libraries, without stores: the CPU time of a POST
//   and its ratio to the dispatcher's client (medians of the rounds)
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { until } from "../demo/stores/processes.ts";
import { bareLoop, type Sender } from "./bare.ts";
import {
  cpuMsOf,
  cpuMsOfTree,
  endInOrder,
  quantile,
  readArguments,
  type Rig,
  round,
  withRig,
  writeResult,
} from "./rig.ts";
import { hostsOf, selfSigned, type Sink, startSink } from "./sink.ts";
import {
  addPlace,
  dropSubscriptions,
  insertBacklog,
  isUnsettled,
  openSchedule,
  subscribe,
} from "./tenants.ts";

const { share, tree, measurements } = readArguments({ share: 1 }, ["throughput", "clients"]);

interface Case {
  readonly hosts: number;
  /** Number of deliveries, or of POSTs. */
  readonly posts: number;
  readonly scheme: "http" | "https";
}

// Each case takes about 10 s, so that JIT compilation in a new process has little effect.
const THROUGHPUT: readonly Case[] = [
  { hosts: 1, posts: 60_000, scheme: "http" },
  { hosts: 100, posts: 200_000, scheme: "http" },
  { hosts: 2_000, posts: 160_000, scheme: "http" },
  { hosts: 100, posts: 200_000, scheme: "https" },
];
const CLIENTS: readonly Case[] = [
  { hosts: 1, posts: 20_000, scheme: "http" },
  { hosts: 100, posts: 40_000, scheme: "http" },
  { hosts: 500, posts: 40_000, scheme: "http" },
  { hosts: 100, posts: 20_000, scheme: "https" },
];
const SENDERS: readonly Sender[] = ["client", "node", "undici", "fetch"];
const ROUNDS = 3;

await (measurements.includes("clients") ? compareClients() : compareDispatcher());

/** Measures each case, except that of https on a machine without openssl. */
async function measureAll<T>(
  cases: readonly Case[],
  sink: Sink,
  measure: (urls: readonly string[], one: Case) => Promise<T>,
): Promise<T[]> {
  const rows: T[] = [];
  for (const one of cases) {
    const port = one.scheme === "http" ? sink.port : sink.tlsPort;
    if (port === undefined)
      console.log("Skipping https: openssl is not installed on this machine.");
    else rows.push(await measure(hostsOf(port, one.hosts, one.scheme), one));
  }
  return rows;
}

async function compareDispatcher(): Promise<void> {
  console.log("Starting durable stores and the receivers …");
  await withRig({ tree, env: { LOG_LEVEL: "warn" } }, async (rig) => {
    const tls = selfSigned(rig.stores.folder);
    const sink = await startSink(tls);
    rig.atEnd(sink.stop);
    const start = () => rig.start("dispatcher", tls && { WEBHOOK_CA_FILE: tls.certFile });
    const schedule = await openSchedule(rig);
    const place = await addPlace(rig);
    const rows = await measureAll(THROUGHPUT, sink, (urls, one) =>
      throughput({ rig, sink, schedule, place, start }, urls, one),
    );
    writeResult("dispatch", { throughput: rows });
  });
}

interface Running {
  readonly rig: Rig;
  readonly sink: Sink;
  readonly schedule: Awaited<ReturnType<typeof openSchedule>>;
  readonly place: Awaited<ReturnType<typeof addPlace>>;
  readonly start: () => ReturnType<Rig["start"]>;
}

async function throughput(
  { rig, sink, schedule, place, start }: Running,
  urls: readonly string[],
  { posts, scheme }: Case,
) {
  const { db, stores } = rig;
  const each = Math.max(1, Math.ceil((posts / urls.length) * share));
  const deliveries = urls.length * each;
  await sink.reset();
  // One half of the bare loop runs before and one half after the dispatcher, because the speed of the machine varies.
  const bareBefore = await bareLoop("fetch", deliveries / 2, urls);
  const subscriptions = await subscribe(rig, urls);
  const dispatcher = await start();
  const settled = (what: string) => until(what, async () => !(await isUnsettled(db)));
  // The first entry of each subscription warms up connections and statements; it does not count.
  await insertBacklog(db, place, subscriptions, { each: 1 });
  await schedule.wake(subscriptions);
  await settled("warm");
  // All entries are appended before the measurement starts, because the bare loop appends no entries.
  await insertBacklog(db, place, subscriptions, { each });
  await db.sql`checkpoint`;
  await sink.reset();
  const cpu = () => [cpuMsOf(dispatcher.pid), cpuMsOfTree(stores.postmaster)] as const;
  const [dispatcherBefore, postgresBefore] = cpu();
  const startedAt = performance.now();
  await schedule.wake(subscriptions);
  await settled("all delivered");
  const seconds = (performance.now() - startedAt) / 1000;
  const [dispatcherAfter, postgresAfter] = cpu();
  const { count } = await sink.count();
  await endInOrder(dispatcher);
  await dropSubscriptions(db, subscriptions);
  const bareAfter = await bareLoop("fetch", deliveries / 2, urls);
  const fetchPerSecond =
    (bareBefore.deliveries + bareAfter.deliveries) / (bareBefore.seconds + bareAfter.seconds);
  const row = {
    subscriptions: urls.length,
    scheme,
    deliveries: count,
    perSecond: round(deliveries / seconds),
    fetchPerSecond: round(fetchPerSecond),
    ratio: round(deliveries / seconds / fetchPerSecond, 2),
    dispatcherCpuUs: round(((dispatcherAfter - dispatcherBefore) * 1_000) / deliveries, 1),
    postgresCpuUs: round(((postgresAfter - postgresBefore) * 1_000) / deliveries, 1),
    fetchCpuUs: round((bareBefore.cpuUs + bareAfter.cpuUs) / 2, 1),
  };
  console.log(
    `${String(row.subscriptions).padStart(6)} subscriptions ${scheme.padEnd(5)}  ${row.perSecond}/s, fetch ${row.fetchPerSecond}/s: ratio ${row.ratio}` +
      `   CPU per delivery: dispatcher ${row.dispatcherCpuUs} µs, Postgres ${row.postgresCpuUs} µs, fetch ${row.fetchCpuUs} µs`,
  );
  return row;
}

async function compareClients(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "reviewrelay-clients-"));
  const tls = selfSigned(folder);
  const sink = await startSink(tls);
  try {
    const rows = await measureAll(CLIENTS, sink, (urls, one) => compare(urls, one, tls?.certFile));
    writeResult("dispatch-clients", { clients: rows.flat() });
  } finally {
    sink.stop();
    rmSync(folder, { recursive: true });
  }
}

async function compare(
  urls: readonly string[],
  { hosts, posts, scheme }: Case,
  caFile: string | undefined,
) {
  const taken = SENDERS.map((sender) => ({
    sender,
    cpuUs: [] as number[],
    perSecond: [] as number[],
  }));
  for (let n = 0; n < ROUNDS; n++)
    for (const { sender, cpuUs, perSecond } of taken) {
      const one = await bareLoop(sender, posts * share, urls, { caFile });
      cpuUs.push(one.cpuUs);
      perSecond.push(one.deliveries / one.seconds);
    }
  const [own] = taken;
  return taken.map(({ sender, cpuUs, perSecond }) => {
    const cpu = quantile(cpuUs, 0.5);
    const row = {
      hosts,
      scheme,
      sender,
      cpuUs: round(cpu, 1),
      perSecond: round(quantile(perSecond, 0.5)),
      cpuRatio: round(cpu / quantile(own?.cpuUs ?? [], 0.5), 2),
    };
    console.log(
      `${String(hosts).padStart(6)} hosts ${scheme.padEnd(5)}  ${sender.padEnd(6)}  ${row.cpuUs} µs of CPU a POST, ` +
        `${row.cpuRatio} of our client's; ${row.perSecond}/s`,
    );
    return row;
  });
}
