import type { Clock } from "../../src/lib/clock.ts";
import type { Limits } from "./limits.ts";

/**
 * The duration in milliseconds after which a running request is slow. A host is fast if its last request was not
 * slow.
 */
const SLOW_MS = 1_000;
/**
 * The interval in milliseconds at which running requests are checked for slowness while others wait for a request slot.
 */
const CHECK_MS = 250;
/** The most fast hosts that are remembered (our choice). */
const MAX_FAST_HOSTS = 100_000;
/**
 * The host group of all hosts that are not known to be fast. Every other host group consists of one host and has its
 * name.
 */
export const SLOW_HOSTS = "";

/** A request slot: the permission for one request to run. */
export interface Slot {
  readonly host: string;
  readonly shard: number;
  readonly bytes: number;
  /**
   * The start of the request in milliseconds by the monotonic clock. The sender sets it; until then the request is
   * not slow.
   */
  startedMs: number;
  /** Aborts the request. The sender sets it; until then there is nothing to abort. */
  abort?: () => void;
}

/** A request that waits for its request slot. */
export interface Waiting {
  readonly shard: number;
  /** The bytes of the entry. */
  readonly bytes: number;
  start(slot: Slot): void;
  cancel(): void;
}

/** The waiting requests to fast hosts, or those to slow hosts, by host. The hosts are in the order of their turns. */
type HostQueue = Map<string, Waiting[]>;

/**
 * Limits the simultaneous requests and shares them fairly: waiting hosts take turns, and within a host the order is
 * first come, first served. Fast hosts and slow hosts have separate request slots (bulkheads), so that hosts that hang
 * take no slot from hosts that answer. A running request to a fast host moves to the slots of slow hosts when it
 * becomes slow. While `Slots` is paused, no request starts.
 */
export class Slots {
  readonly #clock: Clock;
  readonly #limits: Limits;
  #paused = true;
  /** The request slots in use, in the order in which their requests began. */
  readonly #fast = new Set<Slot>();
  readonly #slow = new Set<Slot>();
  readonly #runningPerHost = new Map<string, number>();
  readonly #fastHosts = new Set<string>();
  /**
   * There are two queues, so that a free slot of fast or slow hosts finds its next request without a walk over the
   * others.
   */
  readonly #fastQueue: HostQueue = new Map();
  readonly #slowQueue: HostQueue = new Map();
  #waitingCount = 0;
  #checking = false;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Starts a request as soon as a request slot is free for it. The slot must be released when the request has ended.
   */
  acquire(host: string, waiting: Waiting): void {
    const queue = this.#queueOf(host);
    if (!queue.has(host) && this.#hasRoom(host)) return this.#begin(host, waiting);
    queue.getOrInsertComputed(host, () => []).push(waiting);
    this.#waitingCount += 1;
    if (this.#hasRoom(host)) this.#startWaiting();
    this.#checkLater();
  }

  /**
   * Returns the host group to which no more requests of this host may be added: the host itself if too many of its
   * requests wait, or `SLOW_HOSTS` if the host is not fast and too many requests wait in all or those to slow hosts
   * have too many bytes. Otherwise returns undefined.
   */
  saturatedGroupOf(host: string): string | undefined {
    const { waitingPerHost, waitingSlow, bytes } = this.#limits;
    if (this.#countWaiting(host) >= waitingPerHost) return host;
    if (this.#fastHosts.has(host)) return undefined;
    const isSaturated = this.#waitingCount >= waitingSlow || this.#slowBytes >= bytes / 3;
    return isSaturated ? SLOW_HOSTS : undefined;
  }

  /** Whether so few requests of a host group wait that its parked subscriptions may queue requests again. */
  hasDrained(group: string): boolean {
    const { waitingPerHost, waitingSlow, bytes } = this.#limits;
    if (this.#paused) return false;
    if (group === SLOW_HOSTS)
      return this.#waitingCount < waitingSlow / 2 && this.#slowBytes < bytes / 6;
    return this.#countWaiting(group) < waitingPerHost / 2;
  }

  /** Cancels the waiting requests of a shard. */
  cancelWaiting(shard: number): void {
    const cancelled: Waiting[] = [];
    for (const queue of [this.#fastQueue, this.#slowQueue]) {
      for (const [host, requests] of queue) {
        cancelled.push(...requests.filter((one) => one.shard === shard));
        const left = requests.filter((one) => one.shard !== shard);
        if (left.length > 0) queue.set(host, left);
        else queue.delete(host);
      }
    }
    this.#waitingCount -= cancelled.length;
    for (const one of cancelled) one.cancel();
  }

  release(slot: Slot): void {
    const { host } = slot;
    if (!this.#fast.delete(slot) && !this.#slow.delete(slot)) return;
    const left = (this.#runningPerHost.get(host) ?? 1) - 1;
    if (left > 0) this.#runningPerHost.set(host, left);
    else this.#runningPerHost.delete(host);
    this.#classify(host, !this.#isOld(slot));
    this.#startWaiting();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    // Without a pause there is nothing to start, because a request for which a slot is free waits only during a pause.
    if (!this.#paused) return;
    this.#paused = false;
    this.#startWaiting();
  }

  /** The request slots in use. The requests of some of them may not have begun. */
  get running(): readonly Slot[] {
    return [...this.#fast, ...this.#slow];
  }

  /** Forgets waiting and running requests; waiting requests never start. It remains known which hosts are fast. */
  clear(): void {
    this.#fast.clear();
    this.#slow.clear();
    this.#runningPerHost.clear();
    this.#fastQueue.clear();
    this.#slowQueue.clear();
    this.#waitingCount = 0;
  }

  /** The bytes of the entries that wait for slow hosts or are under way to them. */
  get #slowBytes(): number {
    let sum = 0;
    for (const { bytes } of this.#slow) sum += bytes;
    for (const requests of this.#slowQueue.values()) for (const { bytes } of requests) sum += bytes;
    return sum;
  }

  /**
   * Returns the number of further requests that may start: to fast hosts if `isFast` is true, otherwise to slow hosts.
   */
  #room(isFast: boolean): number {
    const { requests } = this.#limits;
    // Requests that became slow may exceed the number of slow slots, but fast and slow requests together never exceed
    // twice the limit.
    const left = 2 * requests - this.#fast.size - this.#slow.size;
    return Math.min(left, requests - (isFast ? this.#fast : this.#slow).size);
  }

  #hasRoom(host: string): boolean {
    if (this.#paused || this.#room(this.#fastHosts.has(host)) <= 0) return false;
    return (this.#runningPerHost.get(host) ?? 0) < this.#limits.requestsPerHost;
  }

  #begin(host: string, waiting: Waiting): void {
    const { shard, bytes } = waiting;
    const slot: Slot = { host, shard, bytes, startedMs: Number.POSITIVE_INFINITY };
    (this.#fastHosts.has(host) ? this.#fast : this.#slow).add(slot);
    this.#runningPerHost.set(host, (this.#runningPerHost.get(host) ?? 0) + 1);
    waiting.start(slot);
  }

  #startWaiting(): void {
    for (const queue of [this.#fastQueue, this.#slowQueue]) {
      for (const [host, requests] of queue) {
        if (this.#paused || this.#room(queue === this.#fastQueue) <= 0) break;
        if (!this.#hasRoom(host)) continue;
        const first = requests.shift();
        // Moves the host to the end of the queue, so that the next request slot goes to another host.
        queue.delete(host);
        if (requests.length > 0) queue.set(host, requests);
        if (first === undefined) continue;
        this.#waitingCount -= 1;
        this.#begin(host, first);
      }
    }
  }

  #isOld({ startedMs }: Slot): boolean {
    return this.#clock.monotonicMs() - startedMs >= SLOW_MS;
  }

  /** Notes the speed of a host, and moves its waiting requests to the end of the queue of that speed. */
  #classify(host: string, isFast: boolean): void {
    if (this.#fastHosts.has(host) === isFast) return;
    if (isFast && this.#fastHosts.size >= MAX_FAST_HOSTS)
      for (const one of this.#fastHosts) this.#classify(one, false);
    const former = this.#queueOf(host);
    const requests = former.get(host);
    former.delete(host);
    if (isFast) this.#fastHosts.add(host);
    else this.#fastHosts.delete(host);
    if (requests !== undefined) this.#queueOf(host).set(host, requests);
  }

  #queueOf(host: string): HostQueue {
    return this.#fastHosts.has(host) ? this.#fastQueue : this.#slowQueue;
  }

  #countWaiting(host: string): number {
    return this.#queueOf(host).get(host)?.length ?? 0;
  }

  /**
   * Moves requests that have become slow from the request slots of fast hosts to those of slow hosts, every `CHECK_MS`
   * while other requests wait.
   */
  #checkLater(): void {
    if (this.#checking || this.#waitingCount === 0) return;
    this.#checking = true;
    void this.#clock.sleep(CHECK_MS).then(() => {
      this.#checking = false;
      for (const slot of this.#fast) {
        if (!this.#isOld(slot)) continue;
        this.#fast.delete(slot);
        this.#slow.add(slot);
        this.#classify(slot.host, false);
      }
      this.#startWaiting();
      this.#checkLater();
    });
  }
}
