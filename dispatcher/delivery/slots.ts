/** Requests under way at once, over all receivers. A hanging receiver holds one for 15 s at the most. */
export const MAX_REQUESTS = 1_024;
/** Requests under way at once to one host and port, however many subscriptions point there. */
export const MAX_REQUESTS_PER_HOST = 64;

/** A request that waits for its slot. */
interface Waiting {
  readonly shard: number;
  readonly start: () => void;
  readonly cancel: () => void;
}

/**
 * Shares the requests out fairly: hosts that wait take turns, and within a host it is first come, first served.
 * While paused nothing starts.
 */
export class Slots {
  #running = 0;
  #paused = true;
  readonly #runningPerHost = new Map<string, number>();
  readonly #waiting = new Map<string, Waiting[]>();

  /** Calls `start` once there is room; the host must be released when the request has ended. */
  acquire(host: string, waiting: Waiting): void {
    const queue = this.#waiting.get(host);
    if (queue !== undefined) queue.push(waiting);
    else if (this.#hasRoom(host)) this.#begin(host, waiting);
    else this.#waiting.set(host, [waiting]);
  }

  /** Cancels the requests of a shard that wait. */
  withdraw(shard: number): void {
    const withdrawn: Waiting[] = [];
    for (const [host, queue] of this.#waiting) {
      const left = queue.filter((one) => one.shard !== shard);
      if (left.length === queue.length) continue;
      withdrawn.push(...queue.filter((one) => one.shard === shard));
      if (left.length > 0) this.#waiting.set(host, left);
      else this.#waiting.delete(host);
    }
    for (const { cancel } of withdrawn) cancel();
  }

  release(host: string): void {
    this.#running -= 1;
    const left = (this.#runningPerHost.get(host) ?? 1) - 1;
    if (left > 0) this.#runningPerHost.set(host, left);
    else this.#runningPerHost.delete(host);
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

  /** Forgets what waits, which is then never started, and what runs, which must not be released any more. */
  clear(): void {
    this.#running = 0;
    this.#runningPerHost.clear();
    this.#waiting.clear();
  }

  #hasRoom(host: string): boolean {
    if (this.#paused || this.#running >= MAX_REQUESTS) return false;
    return (this.#runningPerHost.get(host) ?? 0) < MAX_REQUESTS_PER_HOST;
  }

  #begin(host: string, { start }: Waiting): void {
    this.#running += 1;
    this.#runningPerHost.set(host, (this.#runningPerHost.get(host) ?? 0) + 1);
    start();
  }

  #startWaiting(): void {
    for (const [host, queue] of this.#waiting) {
      if (this.#paused || this.#running >= MAX_REQUESTS) return;
      if (!this.#hasRoom(host)) continue;
      // The host goes to the end of the line, so that the next slot goes to another one.
      this.#waiting.delete(host);
      const first = queue.shift();
      if (queue.length > 0) this.#waiting.set(host, queue);
      if (first !== undefined) this.#begin(host, first);
    }
  }
}
