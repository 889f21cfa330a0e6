// The events of `bench fleet`, written as the API writes them, and what came of them.
import { systemClock } from "../../src/lib/clock.ts";
import { createLog } from "../../src/lib/log.ts";
import { connectRedis } from "../../src/lib/redis.ts";
import { holdSequences, recordActions } from "../../src/outbox/queries.ts";
import { createSchedule } from "../../src/outbox/schedule.ts";
import { actionOf, insertPlace } from "./events.ts";
import { quantile, round } from "./figures.ts";
import type { Fleet } from "./fleet-processes.ts";
import type { BenchSubscription } from "./rig.ts";

const GROUPS_A_SECOND = 50;

/** For all subscriptions in turn. */
export async function openLoad(
  { db, redisUrl, sink }: Fleet,
  subscriptions: readonly BenchSubscription[],
) {
  const log = createLog({ level: "warn", role: "bench", clock: systemClock });
  const redis = await connectRedis(redisUrl, log);
  const schedule = createSchedule(redis, "rr:", log);
  const place = await insertPlace(db);
  const sent = new Map<string, { readonly at: number; readonly shard: number }>();
  let next = 0;
  const write = async (count: number) => {
    const some = Array.from({ length: count }, () => subscriptions[next++ % subscriptions.length]);
    const actions = some.flatMap((one) => (one ? [actionOf(place, one)] : []));
    const wakes = await db.transaction(async (tx) => {
      await holdSequences(tx, [...new Set(actions.map(({ partnerId }) => partnerId))], true);
      return recordActions(tx, actions, new Date());
    });
    const at = performance.timeOrigin + performance.now();
    for (const [i, { eventId }] of actions.entries())
      sent.set(eventId, { at, shard: some[i]?.shard ?? -1 });
    await schedule.wake(wakes);
  };
  return {
    sent,
    async run(rate: number, ms: number, over?: AbortSignal) {
      const endMs = performance.now() + ms;
      const writes: Promise<void>[] = [];
      for (let n = 0; performance.now() < endMs; n++) {
        if (over?.aborted === true) break;
        writes.push(write(rate / GROUPS_A_SECOND));
        const dueMs = endMs - ms + ((n + 1) * 1_000) / GROUPS_A_SECOND;
        await Bun.sleep(Math.max(0, dueMs - performance.now()));
      }
      await Promise.all(writes);
    },
    async delays() {
      const { arrivals } = await sink.report(true);
      const delays = arrivals
        .flatMap(([id, , , at]) => at - (sent.get(id)?.at ?? Number.NaN))
        .filter((ms) => !Number.isNaN(ms))
        .toSorted((a, b) => a - b);
      const at = (share: number) => round(quantile(delays, share), 1);
      return {
        events: delays.length,
        p50: at(0.5),
        p99: at(0.99),
        most: round(delays.at(-1) ?? 0, 1),
      };
    },
    close: () => redis.disconnect(),
  };
}

export type Load = Awaited<ReturnType<typeof openLoad>>;
