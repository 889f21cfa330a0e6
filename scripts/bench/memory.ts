// `bun run bench memory` measures the memory of a dispatcher whose slow receivers keep large events waiting, and the
// throughput of other subscriptions at the same time. Use --tree PATH to compare checkouts.
//   --subscriptions N --events N --letters N [--letter C]: the large events; --answer MS: the response time of their
//   receivers
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSchedule } from "../../src/outbox/schedule.ts";
import { ROOT } from "../install/install.ts";
import {
  type BenchSubscription,
  insertBacklog,
  insertPlace,
  type Place,
  subscribe,
} from "./backlog.ts";
import { memoryOf } from "./cpu.ts";
import { round } from "./figures.ts";
import { measureApi } from "./memory-api.ts";
import { hostsOf, type Sink, startSink } from "./receivers.ts";
import { until, withRig, writeResult } from "./rig.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    clients: { type: "string", default: "64" },
    each: { type: "string", default: "6" },
    tree: { type: "string", default: ROOT },
    subscriptions: { type: "string" },
    events: { type: "string", default: "64" },
    letters: { type: "string", default: "20000" },
    letter: { type: "string", default: "x" },
    small: { type: "string", default: "0" },
    ordering: { type: "string", default: "subscription" },
    answer: { type: "string", default: "14000" },
  },
});

interface Case {
  readonly subscriptions: number;
  readonly events: number;
  readonly letters: number;
  readonly letter?: string;
}

const CASES: readonly Case[] =
  values.subscriptions === undefined
    ? [
        { subscriptions: 500, events: 70, letters: 20_000 },
        { subscriptions: 500, events: 4, letters: 256 * 1_024 },
      ]
    : [
        {
          subscriptions: Number(values.subscriptions),
          events: Number(values.events),
          letters: Number(values.letters),
          letter: values.letter,
        },
      ];
const HEALTHY = 100;
const HEALTHY_EVENTS = 300;
const SAMPLE_MS = 25;
/** Duration of the measurement in ms; it is longer than one response of the receivers. */
const WATCHED_MS = 26_000;
const BEGIN_MS = 3_000;
const MIB = 2 ** 20;

if (positionals.includes("api")) {
  const options = { clients: Number(values.clients), each: Number(values.each) };
  writeResult("memory-api", await measureApi(resolve(values.tree), options));
  process.exit(0);
}
const rows = [];
for (const one of CASES) rows.push(await measure(one));
writeResult("memory", rows);
process.exit(0);

async function measure({ subscriptions: count, events, letters, letter = "x" }: Case) {
  return withRig({ tree: resolve(values.tree), env: { LOG_LEVEL: "warn" } }, async (rig) => {
    const { db, stores, masterKey, atEnd } = rig;
    const sink = await startSink();
    atEnd(() => sink.child.kill("SIGTERM"));
    const log = createLog({ level: "warn", role: "bench", clock: systemClock });
    const redis = await connectRedis(stores.redisUrl, log);
    atEnd(() => redis.disconnect());
    const schedule = createSchedule(redis, stores.redisPrefix, log);
    const place = await insertPlace(db);
    const urls = hostsOf(sink.port, HEALTHY + count);
    const all = await subscribe(db, masterKey, urls);
    const healthy = all.slice(0, HEALTHY);
    const slow = all.slice(HEALTHY);
    if (values.ordering === "review")
      await db.sql`update webhook_subscriptions set ordering = 'review' where id = any(${slow.map((s) => s.subscriptionId)}::text[])`;
    const hang = urls.slice(HEALTHY).map((url) => new URL(url).hostname);
    const orderOf = ordered();
    await sink.reset({ hang, hangMs: Number(values.answer) });
    const dispatcher = await rig.start("dispatcher");
    await drain("warm", { sink, place, healthy, wake: () => schedule.wake(healthy), db, orderOf });
    await drain("warm", { sink, place, healthy, wake: () => schedule.wake(healthy), db, orderOf });
    const alone = await drain("alone", {
      sink,
      place,
      healthy,
      wake: () => schedule.wake(healthy),
      db,
      orderOf,
    });
    await insertBacklog(db, place, slow, { each: events, padding: letter.repeat(letters) });
    if (Number(values.small) > 0)
      await insertBacklog(db, place, slow, { each: Number(values.small) });
    const before = memoryOf(dispatcher.pid);
    let most = before;
    const watch = setInterval(() => (most = Math.max(most, memoryOf(dispatcher.pid))), SAMPLE_MS);
    const startedAt = performance.now();
    await schedule.wake(slow);
    await Bun.sleep(BEGIN_MS);
    const beside = await drain("beside", {
      sink,
      place,
      healthy,
      wake: () => schedule.wake(healthy),
      db,
      orderOf,
    });
    const trace: number[] = [];
    while (performance.now() - startedAt < WATCHED_MS) {
      trace.push(Math.round(memoryOf(dispatcher.pid) / MIB));
      await Bun.sleep(1_000);
    }
    orderOf(await sink.takeArrivals());
    clearInterval(watch);
    const row = {
      subscriptions: count,
      events,
      letters,
      letter,
      idleMib: round(before / MIB),
      mostMib: round(most / MIB),
      slowPosts: orderOf.seen() - 4 * HEALTHY * HEALTHY_EVENTS,
      disorder: orderOf.wrong(),
      alonePerSecond: round(alone),
      besidePerSecond: round(beside),
      ratio: round(beside / alone, 2),
      trace: trace.join(" "),
    };
    console.log(JSON.stringify(row));
    return row;
  });
}

function ordered() {
  const last = new Map<string, string>();
  let [wrong, seen] = [0, 0];
  const take = (arrivals: Awaited<ReturnType<Sink["takeArrivals"]>>) => {
    for (const [id, , host] of arrivals) {
      if (id < (last.get(host) ?? "")) wrong += 1;
      last.set(host, id);
      seen += 1;
    }
  };
  return Object.assign(take, { wrong: () => wrong, seen: () => seen });
}

async function drain(
  what: string,
  deps: {
    sink: Sink;
    place: Place;
    healthy: readonly BenchSubscription[];
    wake: () => Promise<unknown>;
    db: Parameters<typeof insertBacklog>[0];
    orderOf: ReturnType<typeof ordered>;
  },
): Promise<number> {
  const { sink, place, healthy, wake, db, orderOf } = deps;
  await insertBacklog(db, place, healthy, { each: HEALTHY_EVENTS });
  const hosts = new Set(healthy.map(({ url }) => new URL(url).hostname));
  let left = healthy.length * HEALTHY_EVENTS;
  const startedAt = performance.now();
  await wake();
  await until(
    what,
    async () => {
      const arrivals = await sink.takeArrivals();
      orderOf(arrivals);
      left -= arrivals.filter(([, , host]) => hosts.has(host)).length;
      return left <= 0;
    },
    20,
  );
  return (healthy.length * HEALTHY_EVENTS * 1_000) / (performance.now() - startedAt);
}
