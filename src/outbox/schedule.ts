import type { ChainableCommander, Redis } from "ioredis";

import { fromMs } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { openListener, runScript, script } from "../lib/redis.ts";

/** Subscriptions are spread over this many shards; a shard belongs to one dispatcher at a time. */
export const SHARDS = 64;

/** A subscription that has something to look at, and the shard that it belongs to. */
export interface Wake {
  readonly subscriptionId: string;
  readonly shard: number;
}

/** Due times per shard. Redis only says when to look, and may be empty at any moment. */
export type Schedule = ReturnType<typeof createSchedule>;
/** The part of the schedule that the API uses: it says that there is work. */
export type Waker = Pick<Schedule, "wake">;

/** The score of a wake: due by every clock, so that the one of its writer does not matter. */
const AT_ONCE = 0;

/** One key, so it runs on Redis Cluster; the score is the due time in ms since the epoch. */
const TAKE_DUE = script(`
local due = redis.pcall('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
-- What somebody else put there is dropped: it would stand in the way for ever.
if due.err then
  redis.call('DEL', KEYS[1])
  due = {}
end
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {due, first[2] or ''}`);

const PROBE = script("return redis.call('SET', KEYS[1], '', 'PX', 1000)");

/**
 * Rejects unless Redis does what the processes ask of it: it runs a script that writes, for every shard. A PING is
 * answered by one that refuses scripts, is full, is a replica or has only a part of the keys, too.
 */
export async function probeRedis(redis: Redis, prefix: string): Promise<void> {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  await Promise.all(
    shards.map((shard) => runScript(redis, PROBE, [`${prefix}{${shard}}:probe`], [])),
  );
}

/**
 * Calls `refuse` if the first connection leads to a Redis Cluster of several servers, which answers MOVED for the shards
 * of the others. Later it is only warned of: a process that works by its sweeps is not ended for a hint.
 */
export function refuseCluster(redis: Redis, prefix: string, refuse: (reason: string) => void) {
  redis.once("ready", () => {
    probeRedis(redis, prefix).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("MOVED")) refuse(error.message);
    });
  });
}

export function createSchedule(redis: Redis, prefix: string, log: Log) {
  const key = (shard: number) => `${prefix}{${shard}}:due`;
  const channel = `${prefix}wake`;
  const take = (shard: number, now: number, limit: number) =>
    runScript(redis, TAKE_DUE, [key(shard)], [now, limit]);
  const run = async (wakes: readonly Wake[], add: (pipeline: ChainableCommander) => void) => {
    if (wakes.length === 0) return;
    try {
      const pipeline = redis.pipeline();
      add(pipeline);
      const results = await pipeline.exec();
      const failed = results?.find(([error]) => error)?.[0];
      if (failed) throw failed;
    } catch (error) {
      log.warn("schedule.failed", { wakes: wakes.length, ...errorFields(error) });
      if (!(error instanceof Error) || !error.message.startsWith("WRONGTYPE")) return;
      // Taking nothing drops what has the wrong type.
      const shards = new Set(wakes.map(({ shard }) => shard));
      await Promise.allSettled([...shards].map((shard) => take(shard, 0, 0)));
    }
  };
  return {
    /**
     * Asks the dispatchers to look at these subscriptions at once. Never throws: Postgres holds the work already, and the
     * sweep finds the subscriptions of a wake that was lost.
     */
    wake: (wakes: readonly Wake[]) =>
      run(wakes, (pipeline) => {
        for (const { shard, subscriptionId } of wakes) {
          pipeline.zadd(key(shard), AT_ONCE, subscriptionId);
          pipeline.publish(channel, `${shard} ${subscriptionId}`);
        }
      }),
    /** Plans a look at subscriptions of the caller's own shards, of which no other process is told. */
    plan: (wakes: readonly (Wake & { readonly at: Date })[]) =>
      run(wakes, (pipeline) => {
        // LT: a look that is planned for an earlier instant stays.
        for (const { shard, subscriptionId, at } of wakes)
          pipeline.zadd(key(shard), "LT", at.getTime(), subscriptionId);
      }),
    /** Removes wakes on which the caller has acted already. */
    clear: (wakes: readonly Wake[]) =>
      run(wakes, (pipeline) => {
        for (const { shard, subscriptionId } of wakes) pipeline.zrem(key(shard), subscriptionId);
      }),
    /** Removes the subscriptions of a shard that are due, at most `limit`; answers them and when the next one is due. */
    async takeDue(shard: number, now: Date, limit: number) {
      const answer = await take(shard, now.getTime(), limit);
      const [due, score]: unknown[] = Array.isArray(answer) ? answer : [];
      const ids = Array.isArray(due) ? due.map(String) : [];
      return { due: ids, nextAt: score === "" ? undefined : fromMs(Number(score)) };
    },
    /** Calls back for every wake by any process while Redis can be reached; resolves once it can. */
    onWake(listener: (wake: Wake) => void): Promise<void> {
      const subscriber = openListener(redis);
      subscriber.on("message", (_channel: string, message: string) => {
        const [shard, subscriptionId] = message.split(" ");
        if (subscriptionId !== undefined) listener({ shard: Number(shard), subscriptionId });
      });
      return new Promise((resolve) => {
        subscriber.on("ready", () => {
          subscriber.subscribe(channel).then(
            () => resolve(),
            (error: unknown) => log.warn("schedule.subscribe_failed", errorFields(error)),
          );
        });
      });
    },
  };
}
