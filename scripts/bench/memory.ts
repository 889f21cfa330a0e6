// `bun run bench memory` measures the memory of a dispatcher at its limits: slow receivers keep large events waiting,
// while others take events. Use --tree PATH to compare checkouts.
import { judgeArrivals } from "../../tests/verdicts/arrivals.ts";
import { until } from "../demo/stores/processes.ts";
import { memoryOf, readArguments, round, withRig, writeResult } from "./rig.ts";
import { type Arrival, hostsOf, startSink } from "./sink.ts";
import { addPlace, insertBacklog, openSchedule, sequenceOf, subscribe } from "./tenants.ts";

const { tree } = readArguments({});
const MIB = 2 ** 20;
const SAMPLE_MS = 10;
const HEALTHY = 100;
const HEALTHY_EVENTS = 300;
/** Response time of the slow receivers in ms. */
const ANSWER_MS = 14_000;
/** Duration of the measurement in ms; it is longer than one response of the receivers. */
const WATCHED_MS = 26_000;
const BEGIN_MS = 3_000;

interface Case {
  /** The number of slow receivers. */
  readonly subscriptions: number;
  /** The number of events of each slow receiver. */
  readonly events: number;
  /** The size of each of these events. */
  readonly letters: number;
}

const CASES: readonly Case[] = [
  { subscriptions: 500, events: 70, letters: 20_000 },
  { subscriptions: 500, events: 4, letters: 256 * 1_024 },
];

/** Samples the memory of a process until `stop`, which returns the first and the largest value in MiB. */
function watchMemory(pid: number | undefined) {
  const before = memoryOf(pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, memoryOf(pid))), SAMPLE_MS);
  return {
    stop() {
      clearInterval(watch);
      return { idleMib: round(before / MIB), mostMib: round(most / MIB) };
    },
  };
}

function measure({ subscriptions, events, letters }: Case) {
  return withRig({ tree, env: { LOG_LEVEL: "warn" } }, async (rig) => {
    const { db } = rig;
    const sink = await startSink();
    rig.atEnd(sink.stop);
    const schedule = await openSchedule(rig);
    const place = await addPlace(rig);
    const urls = hostsOf(sink.port, HEALTHY + subscriptions);
    const all = await subscribe(rig, urls);
    const [healthy, slow] = [all.slice(0, HEALTHY), all.slice(HEALTHY)];
    const hosts = urls.map((url) => new URL(url).hostname);
    const arrived = new Arrived(new Set(hosts.slice(0, HEALTHY)));
    await sink.reset({ hang: hosts.slice(HEALTHY), hangMs: ANSWER_MS });
    const dispatcher = await rig.start("dispatcher");
    /** Delivers events to the healthy receivers. Returns the deliveries per second. */
    const drain = async (what: string) => {
      await insertBacklog(db, place, healthy, { each: HEALTHY_EVENTS });
      const goal = arrived.healthy + HEALTHY * HEALTHY_EVENTS;
      const startedAt = performance.now();
      await schedule.wake(healthy);
      const isDone = async () => arrived.take(await sink.takeArrivals()) >= goal;
      await until(what, isDone);
      return (HEALTHY * HEALTHY_EVENTS * 1_000) / (performance.now() - startedAt);
    };
    await drain("warm");
    await drain("warm");
    const alone = await drain("alone");
    await insertBacklog(db, place, slow, { each: events, padding: "x".repeat(letters) });
    const watch = watchMemory(dispatcher.pid);
    const startedAt = performance.now();
    await schedule.wake(slow);
    await Bun.sleep(BEGIN_MS);
    const beside = await drain("beside");
    await Bun.sleep(Math.max(0, WATCHED_MS - (performance.now() - startedAt)));
    arrived.take(await sink.takeArrivals());
    const row = {
      subscriptions,
      events,
      letters,
      ...watch.stop(),
      slowPosts: arrived.slow,
      disorder: arrived.overtaken,
      alonePerSecond: round(alone),
      besidePerSecond: round(beside),
      ratio: round(beside / alone, 2),
    };
    console.log(JSON.stringify(row));
    return row;
  });
}

/** Counts arrivals, and judges their order by host. */
class Arrived {
  healthy = 0;
  slow = 0;
  readonly #well: ReadonlySet<string>;
  readonly #places: { readonly lane: string; readonly place: number }[] = [];

  constructor(well: ReadonlySet<string>) {
    this.#well = well;
  }

  /** Returns the number of arrivals at healthy hosts. */
  take(arrivals: readonly Arrival[]): number {
    for (const [id, , host] of arrivals) {
      this.#places.push({ lane: host, place: sequenceOf(id) });
      if (this.#well.has(host)) this.healthy += 1;
      else this.slow += 1;
    }
    return this.healthy;
  }

  get overtaken(): number {
    return judgeArrivals(this.#places).overtaken.length;
  }
}

const rows: object[] = [];
for (const one of CASES) rows.push(await measure(one));
writeResult("memory", rows);
