// The parts of `bun run bench live`: accepted and delivered events per second, delays and the cost per event (a, b, c),
// a minute without work (i), and the bare loops with which they are compared.
import { encodeTime } from "ulid";

import { connect } from "../../db/client.ts";
import { judgeArrivals } from "../../tests/verdicts/arrivals.ts";
import { bareLoop } from "./bare.ts";
import {
  costOfEach,
  type LiveRig,
  readUsage,
  resetStatements,
  TENANTS,
  topStatements,
} from "./live-rig.ts";
import {
  asFastAs,
  atRate,
  latencies,
  type Offered,
  placeOf,
  prepare,
  type Requests,
  waitsOf,
} from "./load.ts";
import { round } from "./rig.ts";
import { type Arrival, hostsOf } from "./sink.ts";

/**
 * Counts missing and duplicate deliveries, and inversions: events that arrived after a later event of the same
 * subscription from the same client. The delays are measured from the first byte of the request, and from its response.
 */
export function evaluate(requests: Requests, offered: Offered, arrivals: readonly Arrival[]) {
  const placed = arrivals.flatMap(([, , host, at, key]) => {
    const place = placeOf(requests, key);
    if (place === undefined) return [];
    const { n, i } = place;
    // A client sends a request after the previous one was answered, so its later events were accepted later.
    return [{ lane: `${host} ${offered.client[n]}`, place: n * requests.perRequest + i, n, at }];
  });
  const { first, overtaken, repeated } = judgeArrivals(placed);
  return {
    missing: offered.count * requests.perRequest - first.length,
    repeated,
    inversions: overtaken.length,
    lastAt: first.reduce((last, { at }) => Math.max(last, at), 0),
    fromPublishMs: first.map(({ n, at }) => at - (offered.sentAt[n] ?? at)),
    fromAnswerMs: first.map(({ n, at }) => at - (offered.answeredAt[n] ?? at)),
  };
}

/**
 * Counts events that arrived after an event with a higher sequence number. The sequence numbers come from the attempts.
 */
async function sequenceInversions(
  { db, tenants }: LiveRig,
  arrivals: readonly Arrival[],
  sinceMs: number,
): Promise<number> {
  const rows = await db.sql<{ id: string; sequence: number }[]>`
    select event_id as id, sequence from delivery_attempts
     where subscription_id = any(${tenants.map(({ subscriptionId }) => subscriptionId)}::text[])
       and id >= ${encodeTime(Math.floor(sinceMs), 10)} and attempt = 1`;
  const sequences = new Map(rows.map(({ id, sequence }) => [id, sequence]));
  const placed = arrivals.flatMap(([id, , lane]) => {
    const place = sequences.get(id);
    return place === undefined ? [] : [{ lane, place }];
  });
  return judgeArrivals(placed).overtaken.length;
}

interface Load {
  readonly name: string;
  readonly perRequest: number;
  /** Number of prepared requests, which is an upper bound. */
  readonly count: number;
  readonly offer: (requests: Requests) => Promise<Offered>;
}

/** Time in ms without an arrival after which missing events are given up. */
const PATIENCE_MS = 10_000;

export type Loaded = Awaited<ReturnType<typeof measure>>;

async function measure(rig: LiveRig, load: Load) {
  const requests = prepare(rig.sign, rig.tenants, load);
  await rig.sink.reset({ keys: true });
  await resetStatements(rig);
  const before = await readUsage(rig);
  const offered = await load.offer(requests);
  const events = (offered.count - offered.refused) * load.perRequest;
  const count = await untilArrived(rig, events);
  const after = await readUsage(rig);
  const top = await topStatements(rig, events);
  const arrivals = await rig.sink.takeArrivals();
  const received = evaluate(requests, offered, arrivals);
  const took = (offered.endedAt - offered.startedAt) / 1_000;
  const row = {
    name: load.name,
    events,
    refused: offered.refused,
    acceptedPerSecond: round(events / took),
    deliveredPerSecond: round(
      received.fromPublishMs.length / ((received.lastAt - offered.startedAt) / 1_000),
    ),
    // The receivers count all arrivals, but record only a limited number of them.
    missing:
      count > arrivals.length
        ? Math.max(0, events - count)
        : received.missing - offered.refused * load.perRequest,
    repeated: received.repeated,
    inversions: received.inversions + (await sequenceInversions(rig, arrivals, offered.startedAt)),
    accept: latencies(waitsOf(offered)),
    publishToReceipt: latencies(received.fromPublishMs),
    answerToReceipt: latencies(received.fromAnswerMs),
    perEvent: costOfEach(before, after, events),
    top,
  };
  const { p50Ms, p99Ms } = row.publishToReceipt;
  rig.say(
    `  ${row.name}: accepted ${row.acceptedPerSecond}/s, delivered ${row.deliveredPerSecond}/s, ` +
      `${row.inversions} inversions, ${row.missing} missing; publish to receipt p50 ${p50Ms}, p99 ${p99Ms} ms; ` +
      `${row.perEvent.productUs} µs of CPU an event`,
  );
  return row;
}

/** Waits until all events have arrived, or none has arrived for `PATIENCE_MS`. Returns the number of arrivals. */
async function untilArrived({ sink, stop }: LiveRig, events: number): Promise<number> {
  let last = Number.NaN;
  let movedAt = performance.now();
  for (;;) {
    const { count } = await sink.count();
    if (count !== last) movedAt = performance.now();
    last = count;
    if (count >= events || stop.aborted || performance.now() - movedAt > PATIENCE_MS) return count;
    await Bun.sleep(50);
  }
}

/** `mostPerSecond` is more than any version accepts per second, so that the prepared requests do not run out. */
const SINGLE = { perRequest: 1, mostPerSecond: 6_000 };
const BULK = { clients: 4, perRequest: 500, mostPerSecond: 40 };

/** The JIT compiler works for about 15 s of load, and takes a sixth of the CPU time per event until then. */
const WARM_UP_SECONDS = 12;

/** Runs the load after a warm-up, during which effects of earlier parts also end. */
async function warmed(
  rig: LiveRig,
  load: Omit<Load, "count" | "offer">,
  perSecond: number,
  offer: (requests: Requests, seconds: number) => Promise<Offered>,
): Promise<Loaded> {
  const once = (name: string, seconds: number) =>
    measure(rig, {
      ...load,
      name,
      count: perSecond * seconds,
      offer: (requests) => offer(requests, seconds),
    });
  await once(`warm-up of ${load.name}`, WARM_UP_SECONDS);
  return once(load.name, rig.options.seconds);
}

/** Runs clients in a closed loop. */
function closedLoop(rig: LiveRig, name: string, load: typeof BULK): Promise<Loaded> {
  const { clients, perRequest, mostPerSecond } = load;
  return warmed(rig, { name, perRequest }, mostPerSecond, (requests, seconds) =>
    asFastAs(rig.root, requests, { clients, ms: seconds * 1_000 }, rig.stop),
  );
}

export function partA(rig: LiveRig): Promise<Loaded> {
  const { clients } = rig.options;
  rig.say(`(a) ${clients} clients, one event a request`);
  return closedLoop(rig, "a", { ...SINGLE, clients });
}

export async function partB(rig: LiveRig): Promise<Loaded[]> {
  const rows: Loaded[] = [];
  for (const perSecond of rig.options.rates) {
    rig.say(`(b) open loop at ${perSecond}/s`);
    const load = { name: `b-${perSecond}`, perRequest: 1 };
    rows.push(
      await warmed(rig, load, perSecond, (requests) =>
        atRate(rig.root, requests, perSecond, rig.stop),
      ),
    );
  }
  return rows;
}

export function partC(rig: LiveRig): Promise<Loaded> {
  rig.say(`(c) ${BULK.perRequest} events a request, ${BULK.clients} clients`);
  return closedLoop(rig, "c", BULK);
}

const IDLE_MS = 60_000;
/** Time in ms after which effects of earlier parts have ended. */
const CALM_MS = 10_000;

/** Measures the cost per second of a minute without work. */
export async function partI(rig: LiveRig) {
  rig.say("(i) a minute without work");
  // Otherwise the server would do pending work of earlier parts in this minute.
  await rig.db.sql`vacuum (analyze)`;
  await rig.db.sql`checkpoint`;
  await rest(rig, CALM_MS);
  await resetStatements(rig);
  const before = await readUsage(rig);
  const startedAt = performance.now();
  await rest(rig, IDLE_MS);
  const after = await readUsage(rig);
  const seconds = (performance.now() - startedAt) / 1_000;
  return { perEvent: costOfEach(before, after, seconds), top: await topStatements(rig, seconds) };
}

async function rest({ stop }: LiveRig, ms: number): Promise<void> {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt && !stop.aborted) await Bun.sleep(50);
}

const CONNECTIONS = 16;
const INSERT_MS = 2_500;
const POSTS = 20_000;
const ROW = "x".repeat(400);

export type Bare = Awaited<ReturnType<typeof bareLoops>>;

/**
 * Measures how fast this machine does the minimum without the product: inserts of one row and one commit each, and POSTs
 * to 100 hosts, one at a time to each.
 */
export async function bareLoops(rig: LiveRig) {
  rig.say("Bare loops: inserts, fetch, our HTTP client …");
  // Resets the behaviour that the previous part has set for the receivers.
  await rig.sink.reset();
  const insertsPerSecond = await inserts(rig);
  const urls = hostsOf(rig.sink.port, TENANTS);
  const posts = async (sender: "fetch" | "client") => {
    const { deliveries, seconds } = await bareLoop(sender, POSTS, urls, { stop: rig.stop });
    return round(deliveries / seconds);
  };
  const fetchPerSecond = await posts("fetch");
  const clientPerSecond = await posts("client");
  await rig.sink.reset();
  rig.say(
    `  ${insertsPerSecond} inserts/s, fetch ${fetchPerSecond}/s, own client ${clientPerSecond}/s`,
  );
  return { insertsPerSecond, fetchPerSecond, clientPerSecond };
}

async function inserts({ stores, stop }: LiveRig): Promise<number> {
  const pool = connect(stores.databaseUrl, { max: CONNECTIONS, name: "bench-bare" });
  try {
    await pool.sql`create table if not exists live_bare (id bigint generated always as identity primary key, body text)`;
    let count = 0;
    const startedAt = performance.now();
    const loop = async () => {
      while (performance.now() < startedAt + INSERT_MS && !stop.aborted) {
        await pool.sql`insert into live_bare (body) values (${ROW})`;
        count += 1;
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, loop));
    const seconds = (performance.now() - startedAt) / 1_000;
    await pool.sql`drop table live_bare`;
    return round(count / seconds);
  } finally {
    await pool.close();
  }
}

/** Returns the mean of two measurements, because the speed of the machine varies. */
export function meanOf(one: Bare, other: Bare): Bare {
  const mean = (of: (bare: Bare) => number) => round((of(one) + of(other)) / 2);
  return {
    insertsPerSecond: mean((bare) => bare.insertsPerSecond),
    fetchPerSecond: mean((bare) => bare.fetchPerSecond),
    clientPerSecond: mean((bare) => bare.clientPerSecond),
  };
}
