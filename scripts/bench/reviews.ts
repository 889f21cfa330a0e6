// `bun run bench reviews` measures the latency of healthy reviews of a subscription with ordering by review: alone, and
// together with reviews whose events the receiver rejects (with 500, every 7th time with 410), with 1 and 3 events
// each. Afterwards the dispatcher is killed, its successor is stopped, the receiver recovers, and everything is
// delivered. Fails if two events of a review arrive out of order, or if an event is not delivered.
//   --reviews N (10000): the rejected reviews; --seconds S (15): duration of each measurement; --tree PATH
import type { Schedule } from "../../src/outbox/schedule.ts";
import { judgeArrivals } from "../../tests/verdicts/arrivals.ts";
import { until } from "../demo/stores/processes.ts";
import { nowMs } from "./load.ts";
import { commitOf, quantile, readArguments, type Rig, round, withRig, writeResult } from "./rig.ts";
import { hostsOf, type Sink, startSink } from "./sink.ts";
import {
  addPlace,
  appendEvents,
  type BenchSubscription,
  isUnsettled,
  openSchedule,
  orderByReview,
  type Place,
  sequenceOf,
  subscribe,
} from "./tenants.ts";

const { reviews: REFUSED, seconds, tree } = readArguments({ reviews: 10_000, seconds: 15 });
const EVENTS_EACH = [1, 3];
const HEALTHY = 200;
/** Pause in ms after each event of a healthy review. */
const PAUSE_MS = 20;
/**
 * Retry delay in ms. Waiting reviews are read while none of them is due, and become due while the dispatchers are
 * killed.
 */
const RETRY_MS = 60_000;
const ILL = "ill-";
const MOVE_S = 6;
/** Maximum number of events of healthy reviews in flight. */
const UNDER_WAY = 40;

const reviewOf = (id: number, name: string) => ({
  id,
  json: JSON.stringify({ id: 1, external_review_id: name }),
});
const ill = (n: number) => reviewOf(HEALTHY + (n % REFUSED), `${ILL}${n % REFUSED}`);
const well = (n: number) => reviewOf(n % HEALTHY, `well-${n % HEALTHY}`);

async function measure(rig: Rig, each: number) {
  const { db } = rig;
  const sink = await startSink();
  rig.atEnd(sink.stop);
  const schedule = await openSchedule(rig);
  const place = await addPlace(rig);
  const subscriptions = await subscribe(rig, hostsOf(sink.port, 1));
  await orderByReview(db, subscriptions);
  await sink.reset({ refuse: ILL, keys: true });
  const source = new Source({ rig, sink, schedule, place, subscriptions });
  const first = await rig.start("dispatcher");
  // Warm-up: the first events run code that is not compiled yet.
  await source.offer(3);
  const alone = await source.offer(seconds);
  // Healthy reviews are mixed in, so that 20 permanent failures in a row, which disable the subscription, are rare.
  const refused = Array.from({ length: each * REFUSED }, (_, n) => ill(n));
  await source.emit(
    refused.flatMap((review, n) => (n % 8 === 0 ? [well(n), review] : [review])),
    "later",
  );
  await source.offerUntil("all refused reviews wait or have ended", async () => {
    const [row] = await db.sql<{ n: number }[]>`
      select (q.last_logged - f.settled_through + (
               select count(*) from (
                 select from outbox where subscription_id = q.subscription_id
                  group by review_id having bool_and(state <> 'waiting')) r))::int as n
        from outbox_sequences q join outbox_offsets f using (subscription_id)
       where subscription_id = ${subscriptions[0]?.subscriptionId ?? ""}`;
    return (row?.n ?? 0) < UNDER_WAY;
  });
  const beside = await source.offer(seconds);
  const second = await rig.start("dispatcher");
  first.kill("SIGKILL");
  await source.offer(MOVE_S);
  await rig.start("dispatcher");
  second.kill("SIGTERM");
  await source.offer(MOVE_S);
  await sink.reset({ keys: true });
  await source.offerUntil("all are delivered", async () => !(await isUnsettled(db)));
  await source.take();
  return {
    each,
    alone,
    beside,
    ratio: round(beside.p99 / alone.p99, 2),
    posts: source.posts,
    outOfOrder: source.outOfOrder,
    left: Number(await isUnsettled(db)),
  };
}

interface SourceDeps {
  readonly rig: Rig;
  readonly sink: Sink;
  readonly schedule: Schedule;
  readonly place: Place;
  readonly subscriptions: readonly BenchSubscription[];
}

/** Writes events of reviews and reads their arrivals. */
class Source {
  posts = 0;
  #written = 0;
  readonly #deps: SourceDeps;
  readonly #places: { readonly lane: string; readonly place: number }[] = [];
  readonly #writtenAt = new Map<string, number>();
  #latencies: number[] = [];

  constructor(deps: SourceDeps) {
    this.#deps = deps;
  }

  /** Writes an event for each review, in one transaction. */
  async emit(
    reviews: readonly ReturnType<typeof reviewOf>[],
    measured: "now" | "later" = "now",
  ): Promise<void> {
    const { rig, schedule, place, subscriptions } = this.#deps;
    const events = { reviews, metadata: { rate: 4 } };
    const last = await appendEvents(rig.db, place, subscriptions, events);
    if (measured === "now") this.#writtenAt.set(last, nowMs());
    await schedule.wake(subscriptions);
  }

  /**
   * Writes events of healthy reviews for a time in s. Returns their latencies in ms from the commit to the receiver.
   */
  async offer(forS: number): Promise<{ p50: number; p99: number }> {
    // Earlier events may have waited behind the first POSTs of the rejected reviews, so they are ignored.
    this.#writtenAt.clear();
    this.#latencies = [];
    for (const end = nowMs() + forS * 1_000; nowMs() < end;) await this.#next();
    await until("all healthy events have arrived", async () => {
      await this.#enable();
      await this.take();
      return this.#writtenAt.size === 0;
    });
    const at = (q: number) => round(quantile(this.#latencies, q), 1);
    return { p50: at(0.5), p99: at(0.99) };
  }

  async offerUntil(what: string, holds: () => Promise<boolean>): Promise<void> {
    const end = nowMs() + 240_000;
    while (!(await holds())) {
      if (nowMs() > end) throw new Error(`Not within four minutes: ${what}`);
      for (let n = 0; n < 25; n++) await this.#next();
    }
  }

  async #next(): Promise<void> {
    this.#written += 1;
    await this.emit([well(this.#written)]);
    await Bun.sleep(PAUSE_MS);
    if (this.#written % 25 === 0) await this.#enable();
  }

  /** Enables the subscription after 20 permanent failures in a row. */
  async #enable(): Promise<void> {
    const { rig, schedule, subscriptions } = this.#deps;
    const { count } = await rig.db.sql`
      update webhook_subscriptions set state = 'active', consecutive_failure_count = 0, disabled_at = null, disabled_reason = null
       where state = 'disabled'`;
    if (count > 0) await schedule.wake(subscriptions);
  }

  get outOfOrder(): number {
    return judgeArrivals(this.#places).overtaken.length;
  }

  async take(): Promise<void> {
    for (const [eventId, , , at, review = ""] of await this.#deps.sink.takeArrivals()) {
      this.posts += 1;
      this.#places.push({ lane: review, place: sequenceOf(eventId) });
      const writtenAt = this.#writtenAt.get(eventId);
      if (writtenAt === undefined) continue;
      this.#writtenAt.delete(eventId);
      this.#latencies.push(Math.max(0, at - writtenAt));
    }
  }
}

const env = { LOG_LEVEL: "error", RETRY_DELAYS_MS: `${RETRY_MS},${RETRY_MS},${RETRY_MS}` };
const rows = [];
for (const each of EVENTS_EACH)
  rows.push(await withRig({ tree, env }, (rig) => measure(rig, each)));
console.log(`${commitOf(tree)}, ${REFUSED} refused reviews; latencies in ms.`);
console.table(
  rows.map(({ alone, beside, ...rest }) => ({
    ...rest,
    "alone p50": alone.p50,
    "alone p99": alone.p99,
    "beside p50": beside.p50,
    "beside p99": beside.p99,
  })),
);
writeResult("reviews", { refused: REFUSED, results: rows });
if (rows.some(({ outOfOrder, left }) => outOfOrder + left > 0)) process.exitCode = 1;
