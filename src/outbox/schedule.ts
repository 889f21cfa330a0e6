import type { ChainableCommander, Redis, Result } from "ioredis";

import { fromMs } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { openListener } from "../lib/redis.ts";

/** The number of shards over which subscriptions are spread. A dispatcher holds a shard exclusively. */
export const SHARDS = 64;

/** A hint that a subscription of this shard has something to do, such as an entry to send. */
export interface Wake {
  readonly subscriptionId: string;
  readonly shard: number;
}

/** Due times of subscriptions in Redis, by shard. They are hints, and Redis may lose all of them at any moment. */
export type Schedule = ReturnType<typeof createSchedule>;
/** The part of the schedule that the API uses: it wakes dispatchers, and nobody waits for it. */
export interface Waker {
  readonly wake: (wakes: readonly Wake[]) => void;
  /** Wakes the mailer. Called after the commit that queued a mail. */
  readonly wakeMailer: () => void;
}

/** The part of the schedule that dispatchers use. */
export type DueTimes = Omit<Schedule, keyof Waker>;
type Sending = Pick<Schedule, keyof Waker>;

/** The most pipelines of wakes that may wait for Redis at the same time. Further wakes are dropped. */
const MAX_SENDING = 64;

/**
 * Sends wakes in the background, so that no request waits for Redis. While Redis does not answer, at most `MAX_SENDING`
 * pipelines wait, each for the time limit of a command. The sweep of the dispatcher finds the subscriptions of dropped wakes.
 */
export class BackgroundWaker implements Waker {
  readonly #schedule: Sending;
  readonly #log: Log;
  readonly #sending = new Set<Promise<void>>();
  #dropped = 0;

  constructor(schedule: Sending, log: Log) {
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

  /** Waits until the wakes so far are sent or have failed, which takes at most the time limit of a Redis command. */
  async flush(): Promise<void> {
    await Promise.all(this.#sending);
  }
}

/**
 * The score of an immediate wake in the sorted set. It is due by every clock, so that the clock of its writer does
 * not matter.
 */
const AT_ONCE = 0;

/** The message that wakes the mailer. A dispatcher of version 0.1.0 ignores it, and finds the mail by its sweep. */
const MAIL = "mail";

/**
 * Takes due subscriptions from a sorted set of due times in ms since the epoch. It uses one key, as Redis Cluster
 * requires.
 */
const TAKE_DUE = `
local due = redis.pcall('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
-- A key of another type is deleted, because it would block the shard forever.
if due.err then
  redis.call('DEL', KEYS[1])
  due = {}
end
if #due > 0 then redis.call('ZREM', KEYS[1], unpack(due)) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {due, first[2] or ''}`;

const PROBE = "return redis.call('SET', KEYS[1], '', 'PX', 1000)";

declare module "ioredis" {
  interface RedisCommander<Context> {
    takeDue(key: string, now: number, limit: number): Result<unknown, Context>;
    probe(key: string): Result<unknown, Context>;
  }
}

/**
 * Rejects unless Redis runs a script that writes in every shard, as the processes need. A PING also succeeds
 * if Redis refuses scripts, is full, is a replica, or has only a part of the keys.
 */
export async function probeRedis(redis: Redis, prefix: string): Promise<void> {
  redis.defineCommand("probe", { lua: PROBE, numberOfKeys: 1 });
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  await Promise.all(shards.map((shard) => redis.probe(`${prefix}{${shard}}:probe`)));
}

/**
 * Calls `refuse` if the first connection leads to a Redis Cluster of several servers, which answers MOVED for the
 * shards of its other servers. A later change is only logged: a process that can work by its sweeps is not ended for
 * a hint.
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
  redis.defineCommand("takeDue", { lua: TAKE_DUE, numberOfKeys: 1 });
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
      // Running the script for each shard, without taking an entry, deletes a Redis key of the wrong type.
      const shards = new Set(wakes.map(({ shard }) => shard));
      await Promise.allSettled([...shards].map((shard) => redis.takeDue(key(shard), 0, 0)));
    }
  };
  return {
    /**
     * Wakes the dispatchers for these subscriptions immediately. Never throws: PostgreSQL has stored the work
     * already, and the sweep finds the subscriptions of a lost wake.
     */
    wake: (wakes: readonly Wake[]) =>
      run(wakes, (pipeline) => {
        for (const [shard, ids] of byShard(wakes))
          pipeline.zadd(key(shard), ...ids.flatMap((id) => [AT_ONCE, id]));
        // One message for all wakes, because each command and each message costs some microseconds. A
        // dispatcher of an earlier version reads the first, and finds the others by its sweep.
        const all = wakes.map(({ shard, subscriptionId }) => `${shard} ${subscriptionId}`);
        pipeline.publish(channel, all.join(" "));
      }),
    /** Wakes the mailer immediately. Never throws; the sweep of the mailer finds the mails of a lost wake. */
    async wakeMailer(): Promise<void> {
      try {
        await redis.publish(channel, MAIL);
      } catch (error) {
        log.warn("schedule.failed", { wakes: 1, ...errorFields(error) });
      }
    },
    /** Plans wakes for subscriptions of the caller's own shards. Other processes are not notified. */
    plan: (wakes: readonly (Wake & { readonly at: Date })[]) =>
      run(wakes, (pipeline) => {
        // `LT` keeps an earlier due time that the sorted set already has.
        for (const { shard, subscriptionId, at } of wakes)
          pipeline.zadd(key(shard), "LT", at.getTime(), subscriptionId);
      }),
    /** Removes wakes from the sorted sets that the caller has handled. */
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
     * Calls the listeners for every wake by any process while Redis is reachable. Resolves at the first subscription.
     */
    onWake(listener: (wake: Wake) => void, onMail?: () => void): Promise<void> {
      const subscriber = openListener(redis);
      subscriber.on("message", (_channel: string, message: string) => {
        if (message === MAIL) onMail?.();
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
