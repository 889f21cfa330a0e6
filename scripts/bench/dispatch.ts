// `bun run bench dispatch` measures the dispatcher end to end, with durable stores and a record of every attempt, and
// compares it with a bare fetch loop that sends the same POSTs in the same run. Only the ratios are meaningful;
// absolute figures depend on the machine. `bun run bench live` measures latency and isolation.
//   throughput (the default); --share N (1): N times as many deliveries; --tree PATH: the checkout that runs
//   clients: the dispatcher's HTTP client against libraries, without stores
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSchedule } from "../../src/outbox/schedule.ts";
import { ROOT } from "../install/install.ts";
import { endInOrder } from "./end.ts";
import { dropSubscriptions, insertBacklog, insertPlace, subscribe, unsettled } from "./backlog.ts";
import { bareLoop } from "./bare-process.ts";
import { compareClients } from "./clients.ts";
import { cpuMsOf, cpuMsOfTree } from "./cpu.ts";
import { round } from "./figures.ts";
import { wrongUsage } from "./options.ts";
import { hostsOf, selfSigned, startSink } from "./receivers.ts";
import { until, withRig, writeResult } from "./rig.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    share: { type: "string", default: "1" },
    tree: { type: "string", default: ROOT },
  },
});
const unknown = positionals.filter((one) => one !== "throughput" && one !== "clients");
if (unknown.length > 0) throw wrongUsage(`Unknown measurement: ${unknown.join(", ")}`);
if (!(Number(values.share) > 0)) throw wrongUsage("--share must be a number above 0");

// Each case takes about 10 s, so that JIT compilation in a new process has little effect.
const CASES: readonly [count: number, each: number, scheme: "http" | "https"][] = [
  [1, 60_000, "http"],
  [100, 2_000, "http"],
  [2_000, 80, "http"],
  [100, 2_000, "https"],
];
const LOG_LEVEL = "warn";

if (positionals.includes("clients")) {
  await compareClients();
  process.exit(0);
}
console.log("Starting durable stores and the receivers …");
await withRig({ tree: resolve(values.tree), env: { LOG_LEVEL } }, async (rig) => {
  const { db, stores, masterKey, atEnd } = rig;
  const tls = selfSigned(stores.folder);
  const sink = await startSink(tls);
  atEnd(() => sink.child.kill("SIGTERM"));
  const log = createLog({ level: LOG_LEVEL, role: "bench", clock: systemClock });
  const redis = await connectRedis(stores.redisUrl, log);
  atEnd(() => redis.disconnect());
  const schedule = createSchedule(redis, stores.redisPrefix, log);
  const place = await insertPlace(db);
  const rows = [];
  for (const [count, most, scheme] of CASES) {
    const port = scheme === "http" ? sink.port : sink.tlsPort;
    if (port === undefined)
      console.log("Skipping https: openssl is not installed on this machine.");
    else rows.push(await throughput({ urls: hostsOf(port, count, scheme), most, scheme }));
  }
  writeResult("dispatch", { throughput: rows });

  async function throughput({ urls, most, scheme }: Case) {
    const each = Math.ceil(most * Number(values.share));
    const deliveries = urls.length * each;
    await sink.reset();
    // One half of the bare loop runs before and one half after the dispatcher, because the speed of the machine varies.
    const bareBefore = await bareLoop("fetch", deliveries / 2, urls);
    const subscriptions = await subscribe(db, masterKey, urls);
    const dispatcher = await rig.start("dispatcher", tls && { WEBHOOK_CA_FILE: tls.certFile });
    const settled = (what: string) => until(what, async () => (await unsettled(db)) === 0, 20);
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
});
process.exit(0);

interface Case {
  readonly urls: readonly string[];
  readonly most: number;
  readonly scheme: string;
}
