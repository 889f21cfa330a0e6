// `bun run bench reviews` measures the latency of healthy reviews of a subscription with ordering by review: alone, and
// together with reviews whose events the receiver rejects (with 500, every 7th time with 410), with 1 and 3 events
// each. Afterwards the dispatcher is killed, its successor is stopped, the receiver recovers, and everything is
// delivered. Fails if two events of a review arrive out of order, or if an event is not delivered.
//   --reviews N (10000): the rejected reviews; --seconds S (15): duration of each measurement; --tree PATH
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { createSchedule, type Schedule } from "../../src/outbox/schedule.ts";
import { ROOT } from "../install/install.ts";
import {
  type BenchSubscription,
  insertPlace,
  type Place,
  subscribe,
  unsettled,
} from "./backlog.ts";
import { quantile, round } from "./figures.ts";
import { numberOf } from "./options.ts";
import { hostsOf, type Sink, startSink } from "./receivers.ts";
import { commitOf, type Rig, until, withRig, writeResult } from "./rig.ts";

const { values } = parseArgs({
  options: {
    reviews: { type: "string", default: "10000" },
    seconds: { type: "string", default: "15" },
    tree: { type: "string", default: ROOT },
  },
});
const REFUSED = numberOf("--reviews", values.reviews);
const SECONDS = numberOf("--seconds", values.seconds);
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
const MOVE_MS = 6_000;
/** Maximum number of events of healthy reviews in flight. */
const UNDER_WAY = 40;

const env = { LOG_LEVEL: "error", RETRY_DELAYS_MS: `${RETRY_MS},${RETRY_MS},${RETRY_MS}` };
const rows = [];
for (const each of EVENTS_EACH)
  rows.push(await withRig({ tree: resolve(values.tree), env }, (rig) => measure(rig, each)));
console.log(`${commitOf(resolve(values.tree))}, ${REFUSED} refused reviews.\n`);
console.log(
  "| Events each | Alone p50, p99 | Beside p50, p99 | p99 beside / alone | POSTs | Out of order | Left |",
);
console.log("|---|---|---|---|---|---|---|");
for (const { each, alone, beside, ratio, posts, outOfOrder, left } of rows)
  console.log(
    `| ${each} | ${alone.p50}, ${alone.p99} ms | ${beside.p50}, ${beside.p99} ms | ${ratio} | ${posts} | ${outOfOrder} | ${left} |`,
  );
writeResult("reviews", { refused: REFUSED, results: rows });
process.exit(rows.some(({ outOfOrder, left }) => outOfOrder + left > 0) ? 1 : 0);

async function measure(rig: Rig, each: number) {
  const { db, atEnd, stores } = rig;
  const sink = await startSink();
  atEnd(() => sink.child.kill("SIGTERM"));
  const log = createLog({ level: "warn", role: "bench", clock: systemClock });
  const redis = await connectRedis(stores.redisUrl, log);
  atEnd(() => redis.disconnect());
  const schedule = createSchedule(redis, stores.redisPrefix, log);
  const place = await insertPlace(db);
  const [subscription] = await subscribe(db, rig.masterKey, hostsOf(sink.port, 1));
  if (subscription === undefined) throw new Error("No subscription was written.");
  await db.sql`update webhook_subscriptions set ordering = 'review' where id = ${subscription.subscriptionId}`;
  await sink.reset({ refuse: ILL, keys: true });
  const source = new Source({ rig, sink, schedule, place, subscription });
  const first = await rig.start("dispatcher");
  // Warm-up: the first events run code that is not compiled yet.
  await source.offer(3);
  const alone = await source.offer(SECONDS);
  // Healthy reviews are mixed in, so that 20 permanent failures in a row, which disable the subscription, are rare.
  const refused = Array.from({ length: each * REFUSED }, (_, n) => `${ILL}${n % REFUSED}`);
  await source.emit(
    refused.flatMap((review, n) => (n % 8 === 0 ? [`well-${n % HEALTHY}`, review] : [review])),
    "later",
  );
  await source.offerUntil("all refused reviews wait or have ended", async () => {
    const [row] = await db.sql<{ n: number }[]>`
      select (q.last_logged - f.settled_through + (
               select count(*) from (
                 select from outbox where subscription_id = q.subscription_id
                  group by review_id having bool_and(state <> 'waiting')) r))::int as n
        from outbox_sequences q join outbox_offsets f using (subscription_id)
       where subscription_id = ${subscription.subscriptionId}`;
    return (row?.n ?? 0) < UNDER_WAY;
  });
  const beside = await source.offer(SECONDS);
  const second = await rig.start("dispatcher");
  first.kill("SIGKILL");
  await source.offer(MOVE_MS / 1_000);
  await rig.start("dispatcher");
  second.kill("SIGTERM");
  await source.offer(MOVE_MS / 1_000);
  await sink.reset({ keys: true });
  await source.offerUntil("all are delivered", async () => (await unsettled(db)) === 0);
  await source.take();
  return {
    each,
    alone,
    beside,
    ratio: round(beside.p99 / alone.p99, 2),
    posts: source.posts,
    outOfOrder: source.outOfOrder,
    left: await unsettled(db),
  };
}

interface SourceDeps {
  readonly rig: Rig;
  readonly sink: Sink;
  readonly schedule: Schedule;
  readonly place: Place;
  readonly subscription: BenchSubscription;
}

/** Writes events of reviews and reads their arrivals. The id of an event contains its sequence number. */
class Source {
  posts = 0;
  outOfOrder = 0;
  #written = 0;
  readonly #deps: SourceDeps;
  readonly #lastOf = new Map<string, string>();
  readonly #writtenAt = new Map<string, number>();
  #latencies: number[] = [];

  constructor(deps: SourceDeps) {
    this.#deps = deps;
  }

  /** Writes an event for each review, in one transaction. */
  async emit(reviews: readonly string[], wakes: "now" | "later" = "now"): Promise<void> {
    const { rig, schedule, place, subscription } = this.#deps;
    const id = subscription.subscriptionId;
    const [last] = await rig.db.sql<{ eventId: string }[]>`
      with numbered as (
        update outbox_sequences set last_sequence = last_sequence + ${reviews.length}, last_logged = last_sequence + ${reviews.length}
         where subscription_id = ${id} returning last_sequence - ${reviews.length} as base
      ), written as (
        insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event, actor,
          review, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal)
        select lpad(upper(to_hex(s.partner_id)), 8, '0') || lpad((q.base + n)::text, 18, '0'), s.partner_id,
               ${place.accountId}, ${place.storeId}, hashtext(r.name), ${place.storeReviewSiteId}, 'review_received',
               '{"type":"system","id":null,"name":"google"}', ('{"id":1,"external_review_id":"' || r.name || '"}')::json, '{"rate":4}',
               now(), now(), q.base + n, s.number, false
          from numbered q
          join webhook_subscriptions s on s.id = ${id}
         cross join unnest(${reviews}::text[]) with ordinality as r(name, n)
        returning event_id
      )
      select max(event_id) as "eventId" from written`;
    if (wakes === "now") this.#writtenAt.set(last?.eventId ?? "", nowMs());
    await schedule.wake([subscription]);
  }

  /**
   * Writes events of healthy reviews for a time in s. Returns their latencies in ms from the commit to the receiver.
   */
  async offer(seconds: number): Promise<{ p50: number; p99: number }> {
    // Earlier events may have waited behind the first POSTs of the rejected reviews, so they are ignored.
    this.#writtenAt.clear();
    this.#latencies = [];
    for (const end = nowMs() + seconds * 1_000; nowMs() < end;) await this.#next();
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
    await this.emit([`well-${this.#written % HEALTHY}`]);
    await Bun.sleep(PAUSE_MS);
    if (this.#written % 25 === 0) await this.#enable();
  }

  /** Enables the subscription after 20 permanent failures in a row. */
  async #enable(): Promise<void> {
    const { rig, schedule, subscription } = this.#deps;
    const { count } = await rig.db.sql`
      update webhook_subscriptions set state = 'active', consecutive_failure_count = 0, disabled_at = null, disabled_reason = null
       where id = ${subscription.subscriptionId} and state = 'disabled'`;
    if (count > 0) await schedule.wake([subscription]);
  }

  async take(): Promise<void> {
    for (const [eventId, , , at, review = ""] of await this.#deps.sink.takeArrivals()) {
      this.posts += 1;
      if (eventId < (this.#lastOf.get(review) ?? "")) this.outOfOrder += 1;
      else this.#lastOf.set(review, eventId);
      const writtenAt = this.#writtenAt.get(eventId);
      if (writtenAt === undefined) continue;
      this.#writtenAt.delete(eventId);
      this.#latencies.push(Math.max(0, at - writtenAt));
    }
  }
}

/** Returns the time in ms since the epoch, by the same clock as the receivers. */
function nowMs(): number {
  return performance.timeOrigin + performance.now();
}
