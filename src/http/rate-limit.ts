import type { Redis, Result } from "ioredis";

import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { type Key, keyOf } from "../lib/kind-key.ts";
import { networkOf, networksOf } from "../lib/network.ts";
import { Problem } from "../lib/problem.ts";

/** A token bucket: it holds `burst` requests and regains `perMinute` requests per minute. */
interface RateLimit {
  readonly perMinute: number;
  readonly burst: number;
}

interface RateLimits {
  readonly user: RateLimit;
  readonly ip: RateLimit;
  /** The rate limit of an address for routes where passwords, codes and tokens can be guessed. */
  readonly signIn: RateLimit;
}

/**
 * The subject that a request is counted for: the user of a verified token, the address without a token, or the session
 * of a portal link together with the user who created the link (contract 2.9).
 */
export type Subject =
  | { readonly kind: keyof RateLimits; readonly id: string }
  | { readonly kind: "portal"; readonly id: string; readonly maker: string };

export interface Taken {
  readonly allowed: boolean;
  /** Number of requests left in the bucket at this moment. */
  readonly remaining: number;
  readonly limit: RateLimit;
  /** Seconds until the bucket is full, and seconds until it holds one request. */
  readonly fullInS: number;
  readonly nextInS: number;
}

export interface RateLimiter {
  /**
   * Takes a request from the buckets of the subject. Returns undefined if Redis is unreachable; the request then
   * passes (contract 2.9).
   */
  take(subject: Subject): Promise<Taken | undefined>;
  /** Number of requests since the start of the process that no rate limit checked, because Redis was unreachable. */
  readonly unchecked: number;
}

interface Bucket extends RateLimit {
  readonly key: Key<keyof RateLimits | "portal" | "portals">;
}

/**
 * Limits of portal sessions, as multiples of a user's limit: of one session, and of all sessions together whose links
 * one user created.
 */
const PORTAL_SESSION = 1 / 4;
const PORTAL_SESSIONS_OF_MAKER = 4;

/**
 * Returns the buckets from which a request takes. The first bucket belongs to the subject itself. The others are shared
 * by subjects that could together exceed any limit, such as all addresses of a network. A shared bucket holds at least
 * twice as many requests as the first one, so that no single subject can empty it.
 */
function bucketsOf(subject: Subject, limits: RateLimits): Bucket[] {
  const { kind, id } = subject;
  if (kind === "portal")
    return [
      { key: keyOf("portal", id), ...times(limits.user, PORTAL_SESSION) },
      { key: keyOf("portals", subject.maker), ...times(limits.user, PORTAL_SESSIONS_OF_MAKER) },
    ];
  const limit = limits[kind];
  if (kind === "user") return [{ key: keyOf("user", id), ...limit }];
  if (kind === "ip") return [{ key: keyOf("ip", networkOf(id)), ...limit }];
  // The /56 and the /48 have buckets, too, because they often belong to one internet access. If only /64 networks were
  // limited, it could send 256 or 65,536 times the limit.
  return networksOf(id)
    .toReversed()
    .map((network, i) => ({ key: keyOf("signIn", network), ...times(limit, 2 ** i) }));
}

function times({ perMinute, burst }: RateLimit, factor: number): RateLimit {
  return { perMinute: perMinute * factor, burst: Math.max(1, Math.floor(burst * factor)) };
}

/**
 * Lua script that takes one request from all buckets, or from none if one bucket is empty. So a subject that has used
 * up its own limit takes nothing from shared buckets. The script uses the clock of Redis, so that processes with
 * different clocks agree. ARGV contains the rate and the burst of each key.
 */
const TAKE_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local lefts, allowed = {}, 1
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local bucket = redis.pcall('HMGET', key, 'left', 'at')
  -- A Redis key of another type is deleted. Otherwise it would turn off this limit permanently.
  if bucket.err then
    redis.call('DEL', key)
    bucket = {}
  end
  local left, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
  lefts[i] = math.min(burst, left + math.max(0, now - at) * rate)
  if lefts[i] < 1 then allowed = 0 end
end
local answer = {allowed}
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local left = string.format('%.6f', lefts[i] - allowed)
  redis.call('HSET', key, 'left', left, 'at', string.format('%.3f', now))
  redis.call('PEXPIRE', key, math.ceil(burst / rate))
  answer[i + 1] = left
end
return answer`;

declare module "ioredis" {
  interface RedisCommander<Context> {
    takeTokens(keyCount: number, ...keysAndArgs: (string | number)[]): Result<unknown, Context>;
  }
}

const MINUTE_MS = 60_000;
/**
 * Time in ms for which Redis is not called after a failure. So if Redis hangs, it delays one request per pause instead
 * of all requests.
 */
const PAUSE_MS = 1_000;

interface Deps {
  readonly redis: Pick<Redis, "defineCommand" | "takeTokens">;
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
  #pausedUntilMs = Number.NEGATIVE_INFINITY;
  unchecked = 0;

  constructor(deps: Deps) {
    this.#deps = deps;
    deps.redis.defineCommand("takeTokens", { lua: TAKE_SCRIPT });
  }

  async take(subject: Subject): Promise<Taken | undefined> {
    const { clock, limits, prefix, redis } = this.#deps;
    const buckets = bucketsOf(subject, limits);
    if (clock.monotonicMs() >= this.#pausedUntilMs) {
      try {
        const keys = buckets.map(({ key }) => `${prefix}rate:${key}`);
        const args = buckets.flatMap(({ perMinute, burst }) => [perMinute / MINUTE_MS, burst]);
        return takenOf(buckets, await redis.takeTokens(keys.length, ...keys, ...args));
      } catch (error) {
        this.#pause(error);
      }
    }
    this.unchecked += 1;
    return undefined;
  }

  #pause(error: unknown): void {
    const { clock, log } = this.#deps;
    this.#pausedUntilMs = clock.monotonicMs() + PAUSE_MS;
    log.warn("rate_limit.unchecked", { requests: this.unchecked, ...errorFields(error) });
  }
}

/**
 * Returns the state of the tightest bucket: the one that blocks the request for the longest time, or would be the first
 * to block it.
 */
function takenOf(buckets: readonly Bucket[], answer: unknown): Taken {
  const [allowed, ...lefts]: unknown[] = Array.isArray(answer) ? answer : [];
  const states = buckets.map((limit, i) => {
    const left = Number(lefts[i]);
    if (!Number.isFinite(left)) throw new Error("Redis returned no state of a bucket.");
    const perSecond = limit.perMinute / 60;
    return { limit, left, nextInS: (1 - left) / perSecond, perSecond };
  });
  const [tightest] = states.toSorted((a, b) => b.nextInS - a.nextInS);
  if (tightest === undefined) throw new Error("A request must take from at least one bucket.");
  const { limit, left, nextInS, perSecond } = tightest;
  return {
    allowed: allowed === 1,
    remaining: Math.floor(left),
    limit,
    fullInS: Math.ceil((limit.burst - left) / perSecond),
    nextInS: Math.max(1, Math.ceil(nextInS)),
  };
}

/** Counts one request for the rate limit at most once, and builds the rate limit headers of its response. */
export class Meter {
  readonly #limiter: RateLimiter | undefined;
  #taken: Taken | undefined;
  #counted = false;

  constructor(limiter: RateLimiter | undefined) {
    this.#limiter = limiter;
  }

  /** Counts the request for the rate limit. Throws `rate_limited` if a bucket is empty. */
  async count(subject: Subject): Promise<void> {
    if (this.#limiter === undefined || this.#counted) return;
    this.#counted = true;
    this.#taken = await this.#limiter.take(subject);
    if (this.#taken === undefined || this.#taken.allowed) return;
    const headers = { "Retry-After": String(this.#taken.nextInS) };
    throw new Problem("rate_limited", { headers });
  }

  /**
   * Returns the `RateLimit-*` headers of the IETF draft with three header fields. `RateLimit-Policy` contains the
   * refill rate of the bucket.
   */
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
