/** A request under way. */
interface Running {
  readonly startedMs: number;
  /** Aborts when the requests of its shard are broken off. */
  readonly signal: AbortSignal;
  readonly among: Set<Running>;
}

interface ShardRequests {
  readonly abort: AbortController;
  /** In the order in which they began. */
  readonly running: Set<Running>;
}

/** The requests under way, by shard, and the means to break them off. */
export class Requests {
  readonly #shards = new Map<number, ShardRequests>();

  /** Whoever began must `end`. */
  begin(shard: number, startedMs: number): Running {
    let own = this.#shards.get(shard);
    if (own === undefined) {
      own = { abort: new AbortController(), running: new Set() };
      this.#shards.set(shard, own);
    }
    const request = { startedMs, signal: own.abort.signal, among: own.running };
    own.running.add(request);
    return request;
  }

  end(request: Running): void {
    request.among.delete(request);
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
