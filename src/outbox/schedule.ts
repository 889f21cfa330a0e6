import type { ChainableCommander, Redis, Result } from "ioredis";

import { fromMs } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { openListener } from "../lib/redis.ts";

/** Number of shards into which subscriptions are divided. A shard belongs to at most one dispatcher. */
export const SHARDS = 64;

/** A hint that a subscription of this shard has work to do, such as an entry to send. */
export interface Wake {
  readonly subscriptionId: string;
  readonly shard: number;
}

/** Due times of subscriptions in Redis, by shard. They are hints, and Redis may lose all of them at any moment. */
export type Schedule = ReturnType<typeof createSchedule>;
/** The part of the schedule that the API uses to wake dispatchers. Callers do not wait for Redis. */
export interface Waker {
  readonly wake: (wakes: readonly Wake[]) => void;
  /** Wakes the mailer. Called after the commit that queued a mail. */
  readonly wakeMailer: () => void;
}

/** The part of the schedule that dispatchers use. */
export type DueTimes = Omit<Schedule, keyof Waker>;
type WakeSender = Pick<Schedule, keyof Waker>;

/** Maximum number of pipelines of wakes that wait for Redis at the same time. Further wakes are dropped. */
const MAX_SENDING = 64;

/**
 * Sends wakes in the background, so that no request waits for Redis. While Redis does not answer, at most `MAX_SENDING`
 * pipelines wait, each for the time limit of a command. The sweep of the dispatcher finds the subscriptions whose wakes
 * were dropped.
 */
export class BackgroundWaker implements Waker {
  readonly #schedule: WakeSender;
  readonly #log: Log;
  readonly #sending = new Set<Promise<void>>();
  #dropped = 0;

  constructor(schedule: WakeSender, log: Log) {
    this.#schedule = schedule;
    this.#log = log;
  }

  wake(wakes: readonly Wake[]): void {
    if (wakes.length > 0) this.#send(wakes.length, () => this.#schedule.wake(wakes));
  }

  wakeMailer(): void {
    this.#send(1, () => this.#schedule.wakeMailer());
  }

  #send(wakes: number, send: () => Promise<void>): void {
    if (this.#sending.size >= MAX_SENDING) {
      this.#dropped += wakes;
      return;
    }
    const sent = send().finally(() => {
      this.#sending.delete(sent);
      if (this.#dropped > 0) this.#log.warn("schedule.dropped", { wakes: this.#dropped });
      this.#dropped = 0;
    });
    this.#sending.add(sent);
  }

  /** Waits until all earlier wakes are sent or have failed, at most for the time limit of a Redis command. */
  async flush(): Promise<void> {
    await Promise.all(this.#sending);
  }
}

/**
 * The score of an immediate wake in the sorted set. It is in the past by every clock, so a wrong clock of the writer
 * has no effect.
 */
const DUE_AT_ONCE = 0;

/** The message that wakes the mailer. A dispatcher of version 0.1.0 ignores it and finds the mail in its sweep. */
const MAIL_MESSAGE = "mail";

/**
 * Lua script that removes due subscriptions from a sorted set of due times in ms since the epoch. It uses one key, as
 * Redis Cluster requires.
 */
const TAKE_DUE_SCRIPT = `
local due = redis.pcall('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
-- A key of another type is deleted, because it would block the shard forever.
if due.err then
  redis.call('DEL', KEYS[1])
  due = {}
end
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {due, first[2] or ''}`;

const PROBE_SCRIPT = "return redis.call('SET', KEYS[1], '', 'PX', 1000)";

declare module "ioredis" {
  interface RedisCommander<Context> {
    takeDue(key: string, now: number, limit: number): Result<unknown, Context>;
    probe(key: string): Result<unknown, Context>;
  }
}

/**
 * Rejects unless Redis runs a script that writes to every shard. A PING is not enough: it also succeeds if Redis
 * refuses scripts, is full, is a replica, or stores only a part of the keys.
 */
export async function probeRedis(redis: Redis, prefix: string): Promise<void> {
  redis.defineCommand("probe", { lua: PROBE_SCRIPT, numberOfKeys: 1 });
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  await Promise.all(shards.map((shard) => redis.probe(`${prefix}{${shard}}:probe`)));
}

/**
 * Calls `refuse` if the first Redis connection reaches a Redis Cluster of several servers, which answers MOVED for the
 * shards of its other servers. Later failures of Redis are only logged, because Redis carries hints, and the process
 * also works with its sweeps.
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
  redis.defineCommand("takeDue", { lua: TAKE_DUE_SCRIPT, numberOfKeys: 1 });
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
      // The script deletes a Redis key of the wrong type. It runs for each shard with a limit of 0, so that it takes no
      // subscription.
      const shards = new Set(wakes.map(({ shard }) => shard));
      await Promise.allSettled([...shards].map((shard) => redis.takeDue(key(shard), 0, 0)));
    }
  };
  return {
    /**
     * Wakes the dispatchers for these subscriptions immediately. It never throws: PostgreSQL already stores the work,
     * and the sweep finds the subscriptions of a lost wake.
     */
    wake: (wakes: readonly Wake[]) =>
      run(wakes, (pipeline) => {
        for (const [shard, ids] of byShard(wakes))
          pipeline.zadd(key(shard), ...ids.flatMap((id) => [DUE_AT_ONCE, id]));
        // All wakes are sent in one message, because each command and each message takes some microseconds. A
        // dispatcher of an earlier version reads only the first wake, and finds the others in its sweep.
        const all = wakes.map(({ shard, subscriptionId }) => `${shard} ${subscriptionId}`);
        pipeline.publish(channel, all.join(" "));
      }),
    /** Wakes the mailer immediately. It never throws, because the mailer's sweep finds the mails of a lost wake. */
    async wakeMailer(): Promise<void> {
      try {
        await redis.publish(channel, MAIL_MESSAGE);
      } catch (error) {
        log.warn("schedule.failed", { wakes: 1, ...errorFields(error) });
      }
    },
    /** Stores the due times of subscriptions in the caller's own shards, without a message to other processes. */
    plan: (wakes: readonly (Wake & { readonly at: Date })[]) =>
      run(wakes, (pipeline) => {
        // `LT` keeps the existing due time if it is earlier.
        for (const { shard, subscriptionId, at } of wakes)
          pipeline.zadd(key(shard), "LT", at.getTime(), subscriptionId);
      }),
    /** Removes wakes that the caller has handled from the sorted sets. */
    clear: (wakes: readonly Wake[]) =>
      run(wakes, (pipeline) => {
        for (const [shard, ids] of byShard(wakes)) pipeline.zrem(key(shard), ...ids);
      }),
    /** Removes up to `limit` due subscriptions of a shard. Returns them and the next due time. */
    async takeDue(shard: number, now: Date, limit: number) {
      const answer = await redis.takeDue(key(shard), now.getTime(), limit);
      const [due, score]: unknown[] = Array.isArray(answer) ? answer : [];
      const ids = Array.isArray(due) ? due.map(String) : [];
      return { due: ids, nextAt: score === "" ? undefined : fromMs(Number(score)) };
    },
    /**
     * Calls the listeners for each wake that any process sends while Redis is reachable. Resolves when the Redis
     * channel is subscribed for the first time.
     */
    onWake(listener: (wake: Wake) => void, onMail?: () => void): Promise<void> {
      const subscriber = openListener(redis);
      subscriber.on("message", (_channel: string, message: string) => {
        if (message === MAIL_MESSAGE) onMail?.();
        for (const [, shard, subscriptionId = ""] of message.matchAll(/(\d+) (\S+)/g))
          listener({ shard: Number(shard), subscriptionId });
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

/** Groups the ids of the subscriptions by their shard. */
function byShard(wakes: readonly Wake[]): Map<number, string[]> {
  const ids = new Map<number, string[]>();
  for (const { shard, subscriptionId } of wakes) ids.getOrInsert(shard, []).push(subscriptionId);
  return ids;
}
