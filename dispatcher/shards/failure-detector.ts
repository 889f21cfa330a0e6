import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import {
  type Heartbeat,
  LEASE_BLIND_MS,
  LEASE_GLANCE_MS,
  LEASE_TTL_MS,
  LEASE_WATCH_MS,
  type Leases,
} from "./lease-queries.ts";

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
  #seen = new Map<string, Seen>();
  #lookedMs = Number.NEGATIVE_INFINITY;

  /**
   * Takes in all rows and answers those that did not move for the TTL. When the rows were asked for and when they came is
   * by the monotonic clock of this process.
   */
  look(
    rows: readonly Heartbeat[],
    { askedMs, answeredMs }: Readonly<Record<"askedMs" | "answeredMs", number>>,
  ): Heartbeat[] {
    // Who could not look for a while must not conclude that others are dead: they may not have reached Postgres either.
    const isGap = answeredMs - this.#lookedMs > LEASE_BLIND_MS;
    const before = isGap ? new Map<string, Seen>() : this.#seen;
    this.#lookedMs = answeredMs;
    this.#seen = new Map(
      rows.map(({ id, renewedAt }) => {
        const seen = before.get(id);
        const isSame = seen?.renewedAt.getTime() === renewedAt.getTime();
        return [id, isSame ? seen : { renewedAt, sinceMs: answeredMs }];
      }),
    );
    const sinceMs = (id: string) => this.#seen.get(id)?.sinceMs ?? askedMs;
    return rows.filter(({ id }) => askedMs - sinceMs(id) >= LEASE_TTL_MS);
  }
}

interface UndertakerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly leases: Leases;
}

/** Finds the dead among the other dispatchers and ends their leases. */
export class Undertaker {
  readonly #deps: UndertakerDeps;
  /** Hears that shards were freed. */
  readonly #freed: () => void;
  readonly #heartbeats = new Heartbeats();
  /** Those whose burial has begun. */
  readonly #burying = new Set<string>();
  /** All who had a lease at the last look. */
  #living: ReadonlySet<string> = new Set();

  constructor(deps: UndertakerDeps, freed: () => void) {
    this.#deps = deps;
    this.#freed = freed;
  }

  /** Until the next look. */
  get restMs(): number {
    return this.#living.size > 1 ? LEASE_WATCH_MS : LEASE_GLANCE_MS;
  }

  /**
   * Looks at all heartbeats, and buries who stood still for too long; `ownId` is never among them. Who is gone since the
   * last look was buried by another or has left, and its shards wait for whoever has room for them.
   */
  async look(ownId: string): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const askedMs = clock.monotonicMs();
    try {
      const rows = await leases.heartbeats();
      const living = new Set(rows.map(({ id }) => id));
      if (!this.#living.isSubsetOf(living)) this.#freed();
      this.#living = living;
      const silent = this.#heartbeats.look(rows, { askedMs, answeredMs: clock.monotonicMs() });
      // A burial waits for what is under way in the name of the dead, and nothing waits for a burial.
      for (const dead of silent)
        if (dead.id !== ownId && !this.#burying.has(dead.id)) void this.#bury(dead);
    } catch (error) {
      log.warn("leases.unseen", errorFields(error));
    }
  }

  async #bury(dead: Heartbeat): Promise<void> {
    const { leases, log } = this.#deps;
    this.#burying.add(dead.id);
    try {
      const shards = await leases.bury(dead);
      if (shards !== undefined) {
        log.warn("dispatcher.lost", { dispatcher_id: dead.id, shards });
        this.#freed();
      }
    } catch (error) {
      log.warn("dispatcher.unburied", { dispatcher_id: dead.id, ...errorFields(error) });
    }
    this.#burying.delete(dead.id);
  }
}
