/** One request under way. */
interface Request {
  readonly startedMs: number;
  /** Aborts when the requests of its shard are broken off. */
  readonly signal: AbortSignal;
  /** All requests of its shard, this one included. */
  readonly ofShard: Set<Request>;
}

interface ShardRequests {
  readonly abort: AbortController;
  /** In the order in which they began. */
  readonly requests: Set<Request>;
}

/** The requests under way, by shard, and the means to break them off. */
export class InFlight {
  readonly #shards = new Map<number, ShardRequests>();

  /** Whoever calls this must call `end` with what it answers. */
  begin(shard: number, startedMs: number): Request {
    let own = this.#shards.get(shard);
    if (own === undefined) {
      own = { abort: new AbortController(), requests: new Set() };
      this.#shards.set(shard, own);
    }
    const request = { startedMs, signal: own.abort.signal, ofShard: own.requests };
    own.requests.add(request);
    return request;
  }

  end(request: Request): void {
    request.ofShard.delete(request);
  }

  /** When the oldest request of a shard began; undefined if none is under way. */
  oldestMs(shard: number): number | undefined {
    const [oldest] = this.#shards.get(shard)?.requests ?? [];
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
