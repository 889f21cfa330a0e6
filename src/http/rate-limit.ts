import type { Redis } from "ioredis";

import type { Clock } from "../lib/clock.ts";
import { errorFields, type Log } from "../lib/log.ts";
import { networkOf, networksOf } from "../lib/network.ts";
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

/**
 * The party that a request is counted for: the user of a verified token, the address where there is none, or the
 * session of a portal link together with the user who made the link (contract 2.9).
 */
export type Subject =
  | { readonly kind: keyof RateLimits; readonly id: string }
  | { readonly kind: "portal"; readonly id: string; readonly maker: string };

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

interface Bucket extends RateLimit {
  readonly key: string;
}

/** A portal session gets this part of what a user gets, and all sessions of one maker together this multiple. */
const PORTAL_SESSION = 1 / 4;
const PORTAL_SESSIONS_OF_MAKER = 4;

/**
 * The buckets that a request takes from. The first is the party's own; the others are shared with parties that could
 * otherwise add up without a bound. Each shared one holds at least twice an own one, so that no single party empties it.
 */
function bucketsOf(subject: Subject, limits: RateLimits): Bucket[] {
  const { kind, id } = subject;
  if (kind === "portal")
    return [
      { key: `portal:${id}`, ...times(limits.user, PORTAL_SESSION) },
      { key: `portals:${subject.maker}`, ...times(limits.user, PORTAL_SESSIONS_OF_MAKER) },
    ];
  const limit = limits[kind];
  if (kind === "user") return [{ key: `user:${id}`, ...limit }];
  if (kind === "ip") return [{ key: `ip:${networkOf(id)}`, ...limit }];
  // One line has a /56 or even a /48, so that a limit by /64 alone would be 256 or 65,536 limits.
  return networksOf(id)
    .toReversed()
    .map((network, i) => ({ key: `signIn:${network}`, ...times(limit, 2 ** i) }));
}

function times({ perMinute, burst }: RateLimit, factor: number): RateLimit {
  return { perMinute: perMinute * factor, burst: Math.max(1, Math.floor(burst * factor)) };
}

/**
 * Takes one request from all buckets, or from none if one is empty: a party that is over its own limit takes nothing
 * from the buckets that it shares. The clock is that of Redis, so that all processes share a bucket whatever their own
 * clocks say. ARGV has the rate and the burst of each key.
 */
const TAKE = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local lefts, allowed = {}, 1
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local bucket = redis.pcall('HMGET', key, 'left', 'at')
  -- What somebody else put there is dropped: it would switch off the limits of everybody, again and again.
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
return answer`);

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

  async take(subject: Subject): Promise<Taken | undefined> {
    const { clock, limits, prefix, redis } = this.#deps;
    const buckets = bucketsOf(subject, limits);
    if (clock.monotonicMs() >= this.#awayUntilMs) {
      try {
        const keys = buckets.map(({ key }) => `${prefix}rate:${key}`);
        const args = buckets.flatMap(({ perMinute, burst }) => [perMinute / MINUTE_MS, burst]);
        return takenOf(buckets, await runScript(redis, TAKE, keys, args));
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

/** Describes the bucket that refuses for longest, or would refuse first. */
function takenOf(buckets: readonly Bucket[], answer: unknown): Taken {
  const [allowed, ...lefts]: unknown[] = Array.isArray(answer) ? answer : [];
  const states = buckets.map((limit, i) => {
    const left = Number(lefts[i]);
    if (!Number.isFinite(left)) throw new Error("Redis answered no bucket.");
    const perSecond = limit.perMinute / 60;
    return { limit, left, nextInS: (1 - left) / perSecond, perSecond };
  });
  const [tightest] = states.toSorted((a, b) => b.nextInS - a.nextInS);
  if (tightest === undefined) throw new Error("A request takes from one bucket at least.");
  const { limit, left, nextInS, perSecond } = tightest;
  return {
    allowed: allowed === 1,
    remaining: Math.floor(left),
    limit,
    fullInS: Math.ceil((limit.burst - left) / perSecond),
    nextInS: Math.max(1, Math.ceil(nextInS)),
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
