import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import type { Outage, OwnPart } from "../http/failure.ts";
import type { PostResult } from "./deliver.ts";

/** The destination and the time of one attempt; the monotonic times are in ms. */
export interface Attempted {
  readonly host: string;
  readonly partnerId: number;
  readonly startedMs: number;
  readonly endedMs: number;
}

/**
 * The destinations that have to fail, without one that proves the opposite, before a failure is ours (contract 7.8).
 * One destination that does not answer is down; several of different partners are more likely our network. A proxy that
 * refuses is ours from the first refusal on. `machine` and `proxy` say by themselves whose failure it is.
 */
const NEEDED: Readonly<Record<OwnPart, number>> = {
  machine: 0,
  proxy: 0,
  policy: 1,
  names: 3,
  network: 3,
};

/**
 * The time in ms for which a proof counts, also for an attempt that fails at once. For a longer attempt a proof counts
 * from its start on: the way worked while it was under way.
 */
const PROOF_MS = 1_000;
/** The most destinations that are remembered for each part (our choice). */
const MAX_HOSTS = 10_000;
/** The time in ms without a failure of ours after which an outage has ended. It exceeds the longest pause of a lane. */
const OUTAGE_MS = 60_000;

/**
 * The longest time in ms for which a part may fail for everything (our choice). Destinations that are down alone, with no
 * other one to prove it, are recorded after that. It exceeds a night, so that an outage of ours that nobody mends until the
 * morning costs no event.
 */
export const LONGEST_OUTAGE_MS = 24 * 3_600_000;

/**
 * Whether a part of our own is to blame for failures that may be its own or the destination's (contract 7.8). `hosts`
 * and `partners` count the destinations that failed since the part was last seen to work, without those that failed
 * before while others worked.
 *
 * | Began in an outage that has ended | Seen to work within the attempt | Outage lasts | Enough destinations | Ours |
 * |---|---|---|---|---|
 * | yes | - | - | - | yes: the outage may have swallowed what the attempt waited for |
 * | no | yes | - | - | no: the part works, so the destination fails |
 * | no | no | yes | - | yes, until any destination proves that the part works |
 * | no | no | no | yes | yes: what fails for everything is ours |
 * | no | no | no | no | no: one destination that fails is down |
 */
export function isOurs(
  part: OwnPart,
  seen: {
    readonly beganInOutage: boolean;
    readonly isProved: boolean;
    readonly lasts: boolean;
    readonly hosts: number;
    readonly partners: number;
  },
): boolean {
  if (NEEDED[part] === 0 || seen.beganInOutage) return true;
  if (seen.isProved) return false;
  return seen.lasts || Math.min(seen.hosts, seen.partners) >= NEEDED[part];
}

/** Returns host and port as in the `Host` header. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}

interface ReachDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The evidence about one part of our own. */
class Evidence {
  readonly #part: OwnPart;
  #provedMs = Number.NEGATIVE_INFINITY;
  /** The monotonic time of the first failure of ours; undefined while there is no outage. */
  #sinceMs: number | undefined;
  /** The monotonic time at which a destination has ended the last outage. */
  #outageEndedMs = Number.NEGATIVE_INFINITY;
  /** The destinations that failed since the part was last seen to work, with their partners. */
  readonly #suspects = new Map<string, number>();
  /**
   * The destinations whose own failure it is: the part was seen to work after they failed. They say nothing about the
   * part until they are reached again, so that a quiet night with dead receivers alone is no outage.
   */
  readonly #down = new Set<string>();

  constructor(part: OwnPart) {
    this.#part = part;
  }

  worked(host: string, atMs: number): void {
    // A remembered answer is older than an outage that began since, and proves nothing about it.
    if (this.#sinceMs !== undefined && atMs < this.#sinceMs) return;
    this.#provedMs = Math.max(this.#provedMs, atMs);
    if (this.#sinceMs !== undefined) this.#outageEndedMs = atMs;
    this.#sinceMs = undefined;
    if (this.#suspects.size > 0) this.#acquit();
    this.#down.delete(host);
  }

  failed({ host, partnerId, startedMs, endedMs }: Attempted): boolean {
    if (!this.#down.has(host) && this.#suspects.size < MAX_HOSTS)
      this.#suspects.set(host, partnerId);
    const beganInOutage = startedMs < this.#outageEndedMs;
    const isProved = this.#provedMs >= Math.min(startedMs, endedMs - PROOF_MS);
    if (endedMs - (this.#sinceMs ?? endedMs) >= LONGEST_OUTAGE_MS) {
      this.#sinceMs = undefined;
      this.#acquit();
    }
    const hosts = this.#suspects.size;
    const lasts = this.#sinceMs !== undefined;
    const partners = isProved || lasts ? 0 : new Set(this.#suspects.values()).size;
    const ours = isOurs(this.#part, { beganInOutage, isProved, lasts, hosts, partners });
    // Only a destination that works ends an outage, and not one that fails.
    if (ours && !beganInOutage) this.#sinceMs ??= endedMs;
    return ours;
  }

  /** The destinations that failed are down: the part works, or nothing has proved their failures ours for too long. */
  #acquit(): void {
    for (const host of this.#suspects.keys()) this.#down.add(host);
    this.#suspects.clear();
    for (const oldest of this.#down) {
      if (this.#down.size <= MAX_HOSTS) break;
      this.#down.delete(oldest);
    }
  }
}

/** Decides for each attempt whose failure it is, and remembers the outage of our own parts (contract 7.8). */
export class Reach {
  readonly #evidence: Readonly<Record<OwnPart, Evidence>> = {
    machine: new Evidence("machine"),
    proxy: new Evidence("proxy"),
    policy: new Evidence("policy"),
    names: new Evidence("names"),
    network: new Evidence("network"),
  };
  #outage: Outage | undefined;
  /** The monotonic time of the last failure of ours. */
  #failedMs = 0;

  /** The outage that lasts; undefined while nothing of our own fails. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** Notes an attempt. Returns the part of our own that failed; undefined if the attempt counts. */
  note(result: PostResult, attempted: Attempted, now: Date): OwnPart | undefined {
    const seen = whenSeen(result, attempted);
    for (const part of result.works ?? []) this.#evidence[part].worked(seen.host, seen.endedMs);
    const part = "fault" in result ? result.fault : undefined;
    if (part === undefined || !this.#evidence[part].failed(seen)) return undefined;
    const since = this.#outage?.since ?? now;
    this.#outage = { part, since };
    this.#failedMs = attempted.endedMs;
    return part;
  }

  /**
   * Decides whose failure a failed attempt is. Ours is `unsent`, whatever the result was; a destination that our proxy
   * refuses while it passes others has failed.
   */
  attribute(result: PostResult, attempted: Attempted, { clock, log }: ReachDeps): PostResult {
    const isNew = this.#outage === undefined;
    const part = this.note(result, attempted, clock.now());
    if (part === undefined)
      return result.kind === "unsent"
        ? { ...result, kind: "failed", errorCode: "connect" }
        : result;
    const detail = "detail" in result ? result.detail : "";
    if (isNew) log.warn("network.lost", { part, detail });
    const { durationMs, resent } = result;
    return { kind: "unsent", detail, fault: part, durationMs, resent };
  }

  /** Ends the outage if nothing of our own failed for `OUTAGE_MS`. Returns whether it has ended now. */
  settle(nowMs: number): boolean {
    if (this.#outage === undefined || nowMs - this.#failedMs < OUTAGE_MS) return false;
    this.#outage = undefined;
    return true;
  }
}

/**
 * Dates what an attempt has shown. A look-up whose failure the resolver remembers says how DNS was then, and nothing about
 * the time of the attempt.
 */
function whenSeen(result: PostResult, attempted: Attempted): Attempted {
  const lookedUpMs = "rememberedMs" in result ? result.rememberedMs : undefined;
  return lookedUpMs === undefined
    ? attempted
    : { ...attempted, startedMs: lookedUpMs, endedMs: lookedUpMs };
}
