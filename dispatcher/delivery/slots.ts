import type { Clock } from "../../src/lib/clock.ts";
import type { Limits } from "./limits.ts";

/** A request under way for longer is slow. A host is swift if its last request was not. */
const SLOW_MS = 1_000;
/** How often the requests under way are looked at while others wait for them. */
const LOOK_MS = 250;
/** How many swift hosts are remembered (our choice). */
const MAX_SWIFT_HOSTS = 100_000;
/** The crowd of all hosts that are not known to be swift; any other is named by its host. */
export const SLOW_CROWD = "";

/** The place of a request under way. */
export interface Slot {
  readonly host: string;
  /** When the request began, by the monotonic clock; its owner says so, and until then it is not slow. */
  startedMs: number;
}

/** A request that waits for its slot. */
export interface Waiting {
  readonly shard: number;
  start(slot: Slot): void;
  cancel(): void;
}

/** What waits for the slots of one kind, by host; the hosts in the order of their turns. */
type Line = Map<string, Waiting[]>;

/**
 * Shares the requests out fairly: hosts that wait take turns, and within a host it is first come, first served. Hosts
 * that are known to be swift have slots of their own, and a request to them that turns out to be slow gives up its
 * place among them, so that those that hang take nothing from those that answer. While paused nothing starts.
 */
export class Slots {
  readonly #clock: Clock;
  readonly #limits: Limits;
  #paused = true;
  /** Under way, in the order in which they began. */
  readonly #swift = new Set<Slot>();
  readonly #slow = new Set<Slot>();
  readonly #runningPerHost = new Map<string, number>();
  readonly #swiftHosts = new Set<string>();
  /** Apart, so that a free slot is found without a look at all the hosts that it is not for. */
  readonly #swiftLine: Line = new Map();
  readonly #slowLine: Line = new Map();
  #waitingCount = 0;
  #looking = false;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Starts it once there is room; its slot must be released when the request has ended. */
  acquire(host: string, waiting: Waiting): void {
    const line = this.#lineOf(host);
    const queue = line.get(host);
    if (queue === undefined && this.#hasRoom(host)) return this.#begin(host, waiting);
    if (queue === undefined) line.set(host, [waiting]);
    else queue.push(waiting);
    this.#waitingCount += 1;
    if (this.#hasRoom(host)) this.#startWaiting();
    this.#lookLater();
  }

  /** The crowd in which a request to this host would have to wait by its name alone. */
  crowdOf(host: string): string | undefined {
    const { waitingPerHost, waitingSlow } = this.#limits;
    if (this.#countWaiting(host) >= waitingPerHost) return host;
    const isCrowded = !this.#swiftHosts.has(host) && this.#waitingCount >= waitingSlow;
    return isCrowded ? SLOW_CROWD : undefined;
  }

  /** Whether those in a crowd may come and wait as requests again. */
  hasThinned(crowd: string): boolean {
    const { waitingPerHost, waitingSlow } = this.#limits;
    if (this.#paused) return false;
    if (crowd === SLOW_CROWD) return this.#waitingCount < waitingSlow / 2;
    return this.#countWaiting(crowd) < waitingPerHost / 2;
  }

  /** Cancels the requests of a shard that wait. */
  withdraw(shard: number): void {
    const withdrawn: Waiting[] = [];
    for (const line of [this.#swiftLine, this.#slowLine]) {
      for (const [host, queue] of line) {
        const left = queue.filter((one) => one.shard !== shard);
        if (left.length === queue.length) continue;
        withdrawn.push(...queue.filter((one) => one.shard === shard));
        this.#waitingCount -= queue.length - left.length;
        if (left.length > 0) line.set(host, left);
        else line.delete(host);
      }
    }
    for (const one of withdrawn) one.cancel();
  }

  release(slot: Slot): void {
    const { host } = slot;
    if (!this.#swift.delete(slot) && !this.#slow.delete(slot)) return;
    const left = (this.#runningPerHost.get(host) ?? 1) - 1;
    if (left > 0) this.#runningPerHost.set(host, left);
    else this.#runningPerHost.delete(host);
    if (this.#isOld(slot)) this.#callSlow(host);
    else this.#callSwift(host);
    this.#startWaiting();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    // Unless it was paused, everything that there is room for has started already.
    if (!this.#paused) return;
    this.#paused = false;
    this.#startWaiting();
  }

  /** Forgets what waits, which is then never started, and what runs; the speed of the hosts stays known. */
  clear(): void {
    this.#swift.clear();
    this.#slow.clear();
    this.#runningPerHost.clear();
    this.#swiftLine.clear();
    this.#slowLine.clear();
    this.#waitingCount = 0;
  }

  /** How many more requests to a host of this speed may start. */
  #room(isSwift: boolean): number {
    const { requests } = this.#limits;
    // Requests that turn out to be slow can come to be more than their slots, but all together are no more than both.
    const left = 2 * requests - this.#swift.size - this.#slow.size;
    return Math.min(left, requests - (isSwift ? this.#swift : this.#slow).size);
  }

  #hasRoom(host: string): boolean {
    if (this.#paused || this.#room(this.#swiftHosts.has(host)) <= 0) return false;
    return (this.#runningPerHost.get(host) ?? 0) < this.#limits.requestsPerHost;
  }

  #begin(host: string, waiting: Waiting): void {
    const slot = { host, startedMs: Number.POSITIVE_INFINITY };
    (this.#swiftHosts.has(host) ? this.#swift : this.#slow).add(slot);
    this.#runningPerHost.set(host, (this.#runningPerHost.get(host) ?? 0) + 1);
    waiting.start(slot);
  }

  #startWaiting(): void {
    for (const line of [this.#swiftLine, this.#slowLine]) {
      for (const [host, queue] of line) {
        if (this.#paused || this.#room(line === this.#swiftLine) <= 0) break;
        if (!this.#hasRoom(host)) continue;
        const first = queue.shift();
        // The host goes to the end of the line, so that the next slot goes to another one.
        line.delete(host);
        if (queue.length > 0) line.set(host, queue);
        if (first === undefined) continue;
        this.#waitingCount -= 1;
        this.#begin(host, first);
      }
    }
  }

  #isOld({ startedMs }: Slot): boolean {
    return this.#clock.monotonicMs() - startedMs >= SLOW_MS;
  }

  #callSwift(host: string): void {
    if (this.#swiftHosts.has(host)) return;
    if (this.#swiftHosts.size >= MAX_SWIFT_HOSTS)
      for (const one of this.#swiftHosts) this.#callSlow(one);
    this.#swiftHosts.add(host);
    moveTo(this.#swiftLine, this.#slowLine, host);
  }

  #callSlow(host: string): void {
    if (this.#swiftHosts.delete(host)) moveTo(this.#slowLine, this.#swiftLine, host);
  }

  #lineOf(host: string): Line {
    return this.#swiftHosts.has(host) ? this.#swiftLine : this.#slowLine;
  }

  #countWaiting(host: string): number {
    return this.#lineOf(host).get(host)?.length ?? 0;
  }

  /** Finds out which requests are slow, for as long as others wait. */
  #lookLater(): void {
    if (this.#looking || this.#waitingCount === 0) return;
    this.#looking = true;
    void this.#clock.sleep(LOOK_MS).then(() => {
      this.#looking = false;
      for (const slot of this.#swift) {
        if (!this.#isOld(slot)) continue;
        this.#swift.delete(slot);
        this.#slow.add(slot);
        this.#callSlow(slot.host);
      }
      this.#startWaiting();
      this.#lookLater();
    });
  }
}

/** The host's turn comes last there. */
function moveTo(line: Line, from: Line, host: string): void {
  const queue = from.get(host);
  if (queue === undefined) return;
  from.delete(host);
  line.set(host, queue);
}
