import type { Clock } from "../../src/lib/clock.ts";

/** Subscriptions that are remembered; each costs a sweep one probe of the index, about 5 µs. */
const REMEMBERED = 10_000;
/** So few settled entries are walked over as quickly as they are told of. */
const WORTHWHILE = 20;
/** Above every id of a subscription. */
const NO_END = "~";

/** A part of a shard that is walked from an entry on, up to a subscription. */
export interface Stretch {
  readonly shard: number;
  readonly fromId: string;
  readonly after: number;
  readonly untilId: string;
}

/**
 * Where the queues of subscriptions begin, as far as loads and sweeps have seen: everything before is settled, because a
 * sequence only grows. While an old snapshot is open, as of a dump, no vacuum removes what was settled since, and whoever
 * does not know the head walks over all of it.
 */
export class Heads {
  /** By subscription, the one that was seen last at the end. */
  readonly #seen = new Map<string, { readonly shard: number; readonly settled: number }>();

  /** Up to which sequence all is settled. */
  settledOf(id: string): number {
    return this.#seen.get(id)?.settled ?? 0;
  }

  /** The first entry that the subscription has, of whatever kind, is behind `settled`. */
  saw({ id, shard }: { readonly id: string; readonly shard: number }, settled: number): void {
    if (settled < WORTHWHILE) return;
    const known = this.settledOf(id);
    this.#seen.delete(id);
    this.#seen.set(id, { shard, settled: Math.max(known, settled) });
    if (this.#seen.size > REMEMBERED) this.#seen.delete(this.#seen.keys().next().value ?? "");
  }

  /** All of these shards, in stretches that begin at the heads. */
  stretches(shards: readonly number[]): Stretch[] {
    const byShard = Map.groupBy(this.#seen, ([, { shard }]) => shard);
    return shards.flatMap((shard) => {
      const heads = (byShard.get(shard) ?? [])
        .map(([id, { settled }]) => ({ fromId: id, after: settled }))
        .toSorted((a, b) => (a.fromId < b.fromId ? -1 : 1));
      return [{ fromId: "", after: 0 }, ...heads].map((from, i) => ({
        shard,
        ...from,
        untilId: heads[i]?.fromId ?? NO_END,
      }));
    });
  }
}

/** How long heads are believed at the most. */
const RECENT_MS = 300_000;

/**
 * Heads, as long as they hold: a server that was restored, or whose standby took over, may hold again what was settled.
 * No connection lives through that, so whatever fails ends them.
 */
export class RecentHeads {
  readonly #clock: Clock;
  #heads = new Heads();
  #sinceMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  async use<T>(work: (heads: Heads) => Promise<T>): Promise<T> {
    if (this.#clock.monotonicMs() - this.#sinceMs > RECENT_MS) this.#forget();
    try {
      return await work(this.#heads);
    } catch (error) {
      this.#forget();
      throw error;
    }
  }

  #forget(): void {
    this.#heads = new Heads();
    this.#sinceMs = this.#clock.monotonicMs();
  }
}
