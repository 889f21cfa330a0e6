import type { Clock } from "../../src/lib/clock.ts";
import type { Limits } from "./limits.ts";

/** A request under way for longer is slow. A host is swift if its last request was not. */
const SLOW_MS = 1_000;
/** How often the requests under way are looked at while others wait for them. */
const LOOK_MS = 250;
/** How many swift hosts are remembered (our choice). */
const MAX_SWIFT_HOSTS = 100_000;
/** How many requests are made ready beyond those that there is room for. */
const READY_AHEAD = 32;
/** The crowd of all hosts that are not known to be swift; any other is named by its host. */
export const SLOW_CROWD = "";

/** A request under way. */
export interface Slot {
  readonly host: string;
  readonly startedMs: number;
}

/** A request that waits for its slot. */
export interface Waiting {
  readonly shard: number;
  /** Whether it could start now. */
  isReady(): boolean;
  /** Makes it ready, while it holds no slot; `done` says whether it still wants one. */
  prepare(done: (wants: boolean) => void): void;
  start(slot: Slot): void;
  cancel(): void;
}

interface ForHost {
  readonly host: string;
  readonly waiting: Waiting;
}

/** What waits for the slots of one kind. */
interface Line {
  readonly isSwift: boolean;
  /** By host; the hosts in the order of their turns. */
  readonly byHost: Map<string, Waiting[]>;
  /** Made ready, to start before all others. */
  ready: ForHost[];
  preparing: number;
}

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
  readonly #swiftLine = createLine(true);
  readonly #slowLine = createLine(false);
  #waitingCount = 0;
  #looking = false;

  constructor(clock: Clock, limits: Limits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Starts it once there is room; its slot must be released when the request has ended. */
  acquire(host: string, waiting: Waiting): void {
    const { byHost } = this.#lineOf(host);
    const queue = byHost.get(host);
    if (queue === undefined && this.#hasRoom(host) && waiting.isReady())
      return this.#begin(host, waiting);
    if (queue === undefined) byHost.set(host, [waiting]);
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
      for (const [host, queue] of line.byHost) {
        const left = queue.filter((one) => one.shard !== shard);
        if (left.length === queue.length) continue;
        withdrawn.push(...queue.filter((one) => one.shard === shard));
        this.#waitingCount -= queue.length - left.length;
        if (left.length > 0) line.byHost.set(host, left);
        else line.byHost.delete(host);
      }
      for (const { waiting } of line.ready) if (waiting.shard === shard) withdrawn.push(waiting);
      line.ready = line.ready.filter(({ waiting }) => waiting.shard !== shard);
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
    for (const line of [this.#swiftLine, this.#slowLine]) {
      line.byHost.clear();
      line.ready = [];
      line.preparing = 0;
    }
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
    const slot = { host, startedMs: this.#clock.monotonicMs() };
    (this.#swiftHosts.has(host) ? this.#swift : this.#slow).add(slot);
    this.#runningPerHost.set(host, (this.#runningPerHost.get(host) ?? 0) + 1);
    waiting.start(slot);
  }

  #startWaiting(): void {
    this.#startLine(this.#swiftLine);
    this.#startLine(this.#slowLine);
  }

  #startLine(line: Line): void {
    this.#startReady(line);
    for (const [host, queue] of line.byHost) {
      if (this.#paused || this.#room(line.isSwift) <= 0) return;
      if (!this.#hasRoom(host)) continue;
      const [first] = queue;
      const isReady = first === undefined || first.isReady();
      // All room is promised to those that are made ready.
      if (!isReady && !this.#mayPrepare(line)) return;
      // The host goes to the end of the line, so that the next slot goes to another one.
      line.byHost.delete(host);
      queue.shift();
      if (queue.length > 0) line.byHost.set(host, queue);
      if (first === undefined) continue;
      this.#waitingCount -= 1;
      if (isReady) this.#begin(host, first);
      else this.#prepare(host, first);
    }
  }

  #startReady(line: Line): void {
    if (line.ready.length === 0) return;
    const blocked: ForHost[] = [];
    for (let one = line.ready.shift(); one !== undefined; one = line.ready.shift()) {
      if (!this.#hasRoom(one.host)) blocked.push(one);
      else if (one.waiting.isReady()) this.#begin(one.host, one.waiting);
      else this.#prepare(one.host, one.waiting);
    }
    line.ready = [...blocked, ...line.ready];
  }

  /** So many are made ready as will soon start, because they do not stay ready for long. */
  #mayPrepare({ isSwift, preparing, ready }: Line): boolean {
    return preparing + ready.length < this.#room(isSwift) + READY_AHEAD;
  }

  #prepare(host: string, waiting: Waiting): void {
    const line = this.#lineOf(host);
    line.preparing += 1;
    waiting.prepare((wants) => {
      line.preparing -= 1;
      // Meanwhile the host may have become swift or slow.
      if (wants) this.#lineOf(host).ready.push({ host, waiting });
      this.#startWaiting();
    });
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
    return this.#lineOf(host).byHost.get(host)?.length ?? 0;
  }

  /** Finds out which requests are slow, for as long as others wait. */
  #lookLater(): void {
    if (this.#looking || this.#waitingCount === 0) return;
    this.#looking = true;
    void this.#clock.sleep(LOOK_MS).then(() => {
      this.#looking = false;
      for (const slot of this.#swift) {
        if (!this.#isOld(slot)) break;
        this.#swift.delete(slot);
        this.#slow.add(slot);
        this.#callSlow(slot.host);
      }
      this.#startWaiting();
      this.#lookLater();
    });
  }
}

function createLine(isSwift: boolean): Line {
  return { isSwift, byHost: new Map(), ready: [], preparing: 0 };
}

/** The host's turn comes last there. */
function moveTo(line: Line, from: Line, host: string): void {
  const queue = from.byHost.get(host);
  if (queue === undefined) return;
  from.byHost.delete(host);
  line.byHost.set(host, queue);
}
