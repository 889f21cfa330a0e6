/** The row of a dispatcher as it was read: `renewedAt` moves with each renewal and is no time to anybody else. */
export interface Heartbeat {
  readonly id: string;
  readonly renewedAt: Date;
}

/** When the rows were asked for and when they came, by the monotonic clock of who looks. */
interface Look {
  readonly askedMs: number;
  readonly answeredMs: number;
}

interface Seen {
  readonly renewedAt: Date;
  /** When it was first seen like this. */
  readonly sinceMs: number;
}

/**
 * What one dispatcher sees of the others' heartbeats. Who stands still for long enough before its eyes is dead: by its
 * own monotonic clock, so a step of any clock ends no lease.
 */
export class Heartbeats {
  readonly #ttlMs: number;
  readonly #maxGapMs: number;
  #seen = new Map<string, Seen>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(options: { readonly ttlMs: number; readonly maxGapMs: number }) {
    this.#ttlMs = options.ttlMs;
    this.#maxGapMs = options.maxGapMs;
  }

  /** Takes in all rows and answers those that did not move for the TTL. */
  look(rows: readonly Heartbeat[], { askedMs, answeredMs }: Look): Heartbeat[] {
    // Who could not look for a while must not conclude that others are dead: they may not have reached Postgres either.
    const isGap = answeredMs - this.#lookedMs > this.#maxGapMs;
    const before = isGap ? new Map<string, Seen>() : this.#seen;
    this.#lookedMs = answeredMs;
    this.#seen = new Map(
      rows.map(({ id, renewedAt }) => {
        const seen = before.get(id);
        const isSame = seen?.renewedAt.getTime() === renewedAt.getTime();
        return [id, isSame ? seen : { renewedAt, sinceMs: answeredMs }];
      }),
    );
    return rows.filter(({ id }) => this.#silentMs(id, askedMs) >= this.#ttlMs);
  }

  #silentMs(id: string, nowMs: number): number {
    return nowMs - (this.#seen.get(id)?.sinceMs ?? nowMs);
  }
}
