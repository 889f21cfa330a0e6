import type { Redis } from "ioredis";

import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { networkOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";
import { runScript, script } from "../lib/redis.ts";

/** A bucket that holds `burst` requests and gets `perMinute` back. */
interface RateLimit {
  readonly perMinute: number;
  readonly burst: number;
}

interface RateLimits {
  readonly user: RateLimit;
  readonly ip: RateLimit;
  /** Of an address where it tries passwords, codes and tokens. */
  readonly signIn: RateLimit;
}

/** Who a request is counted for: the user of a verified token, or the address of whoever has none. */
export type Subject = { readonly kind: keyof RateLimits; readonly id: string };

export interface Taken {
  readonly allowed: boolean;
  /** Requests left at this moment. */
  readonly remaining: number;
  readonly limit: RateLimit;
  /** Until the bucket is full, and until it holds one request. */
  readonly fullInS: number;
  readonly nextInS: number;
}

export interface RateLimiter {
  /** Nothing if Redis is away: then the request passes (contract 2.9). */
  take(subject: Subject): Promise<Taken | undefined>;
  /** Requests that passed uncounted since the start. */
  readonly unchecked: number;
}

/** One key and the clock of Redis, so that all processes share a bucket whatever their own clocks say. */
const TAKE = script(`
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local bucket = redis.pcall('HMGET', KEYS[1], 'left', 'at')
-- What somebody else put there is dropped: it would switch off the limits of everybody, again and again.
if bucket.err then
  redis.call('DEL', KEYS[1])
  bucket = {}
end
local left, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
left = math.min(burst, left + math.max(0, now - at) * rate)
local allowed = 0
if left >= 1 then left, allowed = left - 1, 1 end
redis.call('HSET', KEYS[1], 'left', string.format('%.6f', left), 'at', string.format('%.3f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst / rate))
return {allowed, string.format('%.6f', left)}`);

const MINUTE_MS = 60_000;
/** After a failure Redis is left alone for so long, so that one that hangs costs one request its patience, not all. */
const AWAY_MS = 1_000;

interface Deps {
  readonly redis: Pick<Redis, "evalsha" | "eval">;
  readonly prefix: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly limits: RateLimits;
}

export function createRateLimiter(deps: Deps): RateLimiter {
  return new RedisRateLimiter(deps);
}

class RedisRateLimiter implements RateLimiter {
  readonly #deps: Deps;
  #awayUntilMs = Number.NEGATIVE_INFINITY;
  unchecked = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async take({ kind, id }: Subject): Promise<Taken | undefined> {
    const { clock, limits, prefix, redis } = this.#deps;
    const limit = limits[kind];
    const key = `${prefix}rate:${kind}:${kind === "user" ? id : networkOf(id)}`;
    if (clock.monotonicMs() >= this.#awayUntilMs) {
      try {
        const args = [limit.perMinute / MINUTE_MS, limit.burst];
        return takenOf(limit, await runScript(redis, TAKE, key, args));
      } catch (error) {
        this.#leaveAlone(error);
      }
    }
    this.unchecked += 1;
    return undefined;
  }

  #leaveAlone(error: unknown): void {
    const { clock, log } = this.#deps;
    this.#awayUntilMs = clock.monotonicMs() + AWAY_MS;
    log.warn("rate_limit.unchecked", { requests: this.unchecked, ...errorFields(error) });
  }
}

function takenOf(limit: RateLimit, answer: unknown): Taken {
  const [allowed, text]: unknown[] = Array.isArray(answer) ? answer : [];
  const left = Number(text);
  if (!Number.isFinite(left)) throw new Error("Redis answered no bucket.");
  const perSecond = limit.perMinute / 60;
  return {
    allowed: allowed === 1,
    remaining: Math.floor(left),
    limit,
    fullInS: Math.ceil((limit.burst - left) / perSecond),
    nextInS: Math.max(1, Math.ceil((1 - left) / perSecond)),
  };
}

/** Counts one request, once, and remembers what its answer has to say about it. */
export class Meter {
  readonly #limiter: RateLimiter | undefined;
  #taken: Taken | undefined;
  #counted = false;

  constructor(limiter: RateLimiter | undefined) {
    this.#limiter = limiter;
  }

  /** Throws `rate_limited` if the bucket is empty. */
  async count(subject: Subject): Promise<void> {
    if (this.#limiter === undefined || this.#counted) return;
    this.#counted = true;
    this.#taken = await this.#limiter.take(subject);
    if (this.#taken === undefined || this.#taken.allowed) return;
    const headers = { "Retry-After": String(this.#taken.nextInS) };
    throw new Problem("rate_limited", { headers });
  }

  /** `RateLimit-*` as in the IETF draft with three fields; the policy says what the bucket gets back. */
  get headers(): Readonly<Record<string, string>> {
    if (this.#taken === undefined) return {};
    const { limit, remaining, fullInS } = this.#taken;
    return {
      "RateLimit-Limit": String(limit.burst),
      "RateLimit-Remaining": String(remaining),
      "RateLimit-Reset": String(fullInS),
      "RateLimit-Policy": `${limit.perMinute};w=60;burst=${limit.burst}`,
    };
  }
}
