/** A request under way. */
interface Running {
  readonly startedMs: number;
}

interface ShardRequests {
  readonly abort: AbortController;
  /** In the order in which they began. */
  readonly running: Set<Running>;
}

/** The requests under way, by shard, and the means to break them off. */
export class Requests {
  readonly #shards = new Map<number, ShardRequests>();

  /** Whoever began must `end`. The signal aborts when the requests of this shard are broken off. */
  begin(shard: number, startedMs: number): { signal: AbortSignal; end: () => void } {
    let own = this.#shards.get(shard);
    if (own === undefined) {
      own = { abort: new AbortController(), running: new Set() };
      this.#shards.set(shard, own);
    }
    const { abort, running } = own;
    const request = { startedMs };
    running.add(request);
    return { signal: abort.signal, end: () => void running.delete(request) };
  }

  /** When the oldest one of a shard began. */
  oldestMs(shard: number): number | undefined {
    const [oldest] = this.#shards.get(shard)?.running ?? [];
    return oldest?.startedMs;
  }

  breakOff(shard: number): void {
    const own = this.#shards.get(shard);
    this.#shards.delete(shard);
    own?.abort.abort();
  }

  breakOffAll(): void {
    for (const shard of this.#shards.keys()) this.breakOff(shard);
  }
}
