// Parts a, b and c: accepted and delivered events per second, delays, and the cost per event.
import { round } from "../figures.ts";
import { evaluate, latencies, sequenceInversions } from "./evaluate.ts";
import { asFastAs, atRate, type Offered } from "../offer.ts";
import { prepare, type Requests } from "../requests.ts";
import type { LiveRig } from "./rig.ts";
import type { Tenant } from "../tenants.ts";
import { costOfEach, readUsage, resetStatements, topStatements } from "./usage.ts";

interface Load {
  readonly name: string;
  readonly tenants: readonly Tenant[];
  readonly perRequest: number;
  /** Number of prepared requests, which is an upper bound. */
  readonly count: number;
  readonly offer: (requests: Requests) => Promise<Offered>;
}

/** Time in ms without an arrival after which missing events are given up. */
const PATIENCE_MS = 10_000;

export type Loaded = Awaited<ReturnType<typeof measure>>;

async function measure(rig: LiveRig, load: Load) {
  const requests = prepare(rig.sign, load.tenants, load);
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
    accept: latencies(
      [...offered.answeredAt.subarray(0, offered.count)].map(
        (at, n) => at - (offered.sentAt[n] ?? at),
      ),
    ),
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
const HOT = 2;

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
function closedLoop(
  rig: LiveRig,
  name: string,
  load: { tenants: readonly Tenant[]; clients: number } & Omit<typeof BULK, "clients">,
): Promise<Loaded> {
  const { tenants, clients, perRequest, mostPerSecond } = load;
  return warmed(rig, { name, tenants, perRequest }, mostPerSecond, (requests, seconds) =>
    asFastAs(rig.root, requests, { clients, ms: seconds * 1_000 }, rig.stop),
  );
}

export function partA(rig: LiveRig): Promise<Loaded> {
  const { clients } = rig.options;
  rig.say(`(a) ${clients} clients, one event a request`);
  return closedLoop(rig, "a", { ...SINGLE, clients, tenants: rig.tenants });
}

export function partH(rig: LiveRig): Promise<Loaded> {
  const { clients } = rig.options;
  rig.say(`(h) ${clients} clients, one event a request, of ${HOT} partners`);
  return closedLoop(rig, "h", { ...SINGLE, clients, tenants: rig.tenants.slice(0, HOT) });
}

export async function partB(rig: LiveRig): Promise<Loaded[]> {
  const rows: Loaded[] = [];
  for (const perSecond of rig.options.rates) {
    rig.say(`(b) open loop at ${perSecond}/s`);
    const load = { name: `b-${perSecond}`, tenants: rig.tenants, perRequest: 1 };
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
  return closedLoop(rig, "c", { ...BULK, tenants: rig.tenants });
}
