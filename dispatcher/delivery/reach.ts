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
 * The number of destinations that have to fail before their failures count as ours, if no other destination proves that
 * the part works (contract 7.8). One destination that does not answer is down. If destinations of several partners do
 * not answer, our network has probably failed. A refusal by our proxy or firewall (`policy`) is our failure from the
 * first one on. Failures of `machine` and `proxy` are always ours.
 */
const NEEDED_DESTINATIONS: Readonly<Record<OwnPart, number>> = {
  machine: 0,
  proxy: 0,
  policy: 1,
  names: 3,
  network: 3,
};

/**
 * The time in ms before the end of a failed attempt in which a proof that the part works counts. If the attempt took
 * longer, every proof since its start counts, because the part worked while the attempt was under way.
 */
const PROOF_MS = 1_000;
/** The most destinations that are remembered for each part (our choice). */
const MAX_HOSTS = 10_000;
/**
 * The time in ms without a failure of ours after which an outage has ended. It exceeds the longest wait of a lane after
 * such a failure.
 */
const OUTAGE_MS = 60_000;

/**
 * The longest outage of a part in ms during which failures count as ours (our choice). After that they count as
 * failures of the destinations, which may be down while no other destination is tried that would prove it. The time
 * exceeds a night, so that an outage of ours that nobody repairs until the morning costs no event.
 */
export const LONGEST_OUTAGE_MS = 24 * 3_600_000;

/**
 * Whether a failure that either a part of our own or the destination has caused counts as ours (contract 7.8). `hosts`
 * and `partners` count the destinations that failed since the part was last seen to work, except those that are known
 * to be down themselves.
 *
 * | Began in an outage that has ended | Seen to work within the attempt | Outage lasts | Enough destinations | Ours |
 * |---|---|---|---|---|
 * | yes | - | - | - | yes: packets that it waited for may have been lost in the outage |
 * | no | yes | - | - | no: the part works, so the destination fails |
 * | no | no | yes | - | yes, until any destination proves that the part works |
 * | no | no | no | yes | yes: no destination works, so the failure is ours |
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
  if (NEEDED_DESTINATIONS[part] === 0 || seen.beganInOutage) return true;
  if (seen.isProved) return false;
  return seen.lasts || Math.min(seen.hosts, seen.partners) >= NEEDED_DESTINATIONS[part];
}

/** Returns the host and port of a URL as in the `Host` header. */
export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}

interface ReachDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** The evidence whether one part of our own works. */
class Evidence {
  readonly #part: OwnPart;
  #provedMs = Number.NEGATIVE_INFINITY;
  /** The monotonic time of the first failure of ours; undefined while there is no outage. */
  #sinceMs: number | undefined;
  /** The monotonic time at which a destination was reached and so ended the last outage. */
  #outageEndedMs = Number.NEGATIVE_INFINITY;
  /** The destinations that failed since the part was last seen to work, with their partners. */
  readonly #suspects = new Map<string, number>();
  /**
   * The destinations that are down themselves: the part was seen to work after they failed. Their failures are not
   * counted against the part until they are reached again. Otherwise a night in which only receivers that are down are
   * tried would look like an outage.
   */
  readonly #down = new Set<string>();

  constructor(part: OwnPart) {
    this.#part = part;
  }

  worked(host: string, atMs: number): void {
    // Ignores a remembered DNS answer that is older than the present outage, because it proves nothing about the
    // outage.
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
    // A failure of ours begins an outage, unless one lasts already or the attempt began in an outage that has ended.
    if (ours && !beganInOutage) this.#sinceMs ??= endedMs;
    return ours;
  }

  /**
   * Marks the destinations that failed as down, because the part works, or because the outage has lasted for too long
   * to be ours.
   */
  #acquit(): void {
    for (const host of this.#suspects.keys()) this.#down.add(host);
    this.#suspects.clear();
    for (const oldest of this.#down) {
      if (this.#down.size <= MAX_HOSTS) break;
      this.#down.delete(oldest);
    }
  }
}

/**
 * Decides for each attempt whether its failure is ours, and stores the current outage of our own parts (contract 7.8).
 */
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

  /** The present outage; undefined while no part of our own fails. */
  get outage(): Outage | undefined {
    return this.#outage;
  }

  /**
   * Notes an attempt. Returns the part of our own that failed; undefined if none has failed or the destination counts
   * as the cause.
   */
  note(result: PostResult, attempted: Attempted, clock: Pick<Clock, "now">): OwnPart | undefined {
    const seen = whenSeen(result, attempted);
    for (const part of result.works ?? []) this.#evidence[part].worked(seen.host, seen.endedMs);
    const part = "fault" in result ? result.fault : undefined;
    if (part === undefined || !this.#evidence[part].failed(seen)) return undefined;
    const since = this.#outage?.since ?? clock.now();
    this.#outage = { part, since };
    this.#failedMs = attempted.endedMs;
    return part;
  }

  /**
   * Decides whether a failed attempt is our failure or the destination's. A failure of ours becomes `unsent`, whatever
   * the result was. If our proxy refuses one destination but passes others, the destination has failed.
   */
  attribute(result: PostResult, attempted: Attempted, { clock, log }: ReachDeps): PostResult {
    const isNew = this.#outage === undefined;
    const part = this.note(result, attempted, clock);
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
 * Returns the attempt with the times to which its evidence belongs. If the resolver only remembers that an earlier
 * look-up failed, the result shows the state of DNS at that look-up, and not at the attempt.
 */
function whenSeen(result: PostResult, attempted: Attempted): Attempted {
  const lookedUpMs = "rememberedMs" in result ? result.rememberedMs : undefined;
  return lookedUpMs === undefined
    ? attempted
    : { ...attempted, startedMs: lookedUpMs, endedMs: lookedUpMs };
}
