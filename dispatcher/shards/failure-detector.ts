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

interface SeenHeartbeat {
  readonly renewedAt: Date;
  /** The monotonic time in milliseconds at which this heartbeat value was first read. */
  readonly sinceMs: number;
}

export interface FailureDetectorDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly leases: Leases;
}

/**
 * Detects crashed dispatchers by their heartbeats and expires their leases. The reader measures with its own monotonic
 * clock how long a heartbeat has not changed, so no step of a wall clock expires a lease.
 */
export class FailureDetector {
  readonly #deps: FailureDetectorDeps;
  /** Called when a lease has expired or was released, so that its shards are free. */
  readonly #onFreed: () => void;
  /** The heartbeats of all dispatchers that had a lease at the last read. */
  #seen = new Map<string, SeenHeartbeat>();
  #readMs = Number.NEGATIVE_INFINITY;
  /** The dispatchers with a lease that is being expired. */
  readonly #expiring = new Set<string>();

  constructor(deps: FailureDetectorDeps, onFreed: () => void) {
    this.#deps = deps;
    this.#onFreed = onFreed;
  }

  /** The time in milliseconds until the next check. */
  get intervalMs(): number {
    return this.#seen.size > 1 ? LEASE_WATCH_MS : LEASE_GLANCE_MS;
  }

  /**
   * Reads all heartbeats and expires every lease that was not renewed for `LEASE_TTL_MS`, except that of `ownId`. If a
   * dispatcher has vanished since the last check, it shut down or another process expired its lease: its shards are
   * free.
   */
  async check(ownId: string): Promise<void> {
    const { clock, leases, log } = this.#deps;
    const askedMs = clock.monotonicMs();
    try {
      const rows = await leases.heartbeats();
      const before = new Set(this.#seen.keys());
      const silent = this.read(rows, { askedMs, answeredMs: clock.monotonicMs() });
      if (!before.isSubsetOf(this.#seen)) this.#onFreed();
      // The expiry is not awaited: it waits for the statements of the crashed process, which must not delay the next
      // check.
      for (const dead of silent)
        if (dead.id !== ownId && !this.#expiring.has(dead.id)) void this.#expire(dead);
    } catch (error) {
      log.warn("heartbeats.read_failed", errorFields(error));
    }
  }

  /**
   * Takes all rows of one read and returns the heartbeats that have not changed for `LEASE_TTL_MS`. The read was sent
   * at `askedMs` and answered at `answeredMs`, by the monotonic clock of this process.
   */
  read(
    rows: readonly Heartbeat[],
    { askedMs, answeredMs }: Readonly<Record<"askedMs" | "answeredMs", number>>,
  ): Heartbeat[] {
    // After a gap between two reads every heartbeat counts as new: PostgreSQL may have been out of reach for the other
    // dispatchers, too, so they need not have crashed.
    const isGap = answeredMs - this.#readMs > LEASE_BLIND_MS;
    const before = isGap ? new Map<string, SeenHeartbeat>() : this.#seen;
    this.#readMs = answeredMs;
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

  async #expire(dead: Heartbeat): Promise<void> {
    const { leases, log } = this.#deps;
    this.#expiring.add(dead.id);
    try {
      const shards = await leases.expire(dead);
      if (shards !== undefined) {
        log.warn("dispatcher.lost", { dispatcher_id: dead.id, shards });
        this.#onFreed();
      }
    } catch (error) {
      log.warn("lease.expire_failed", { dispatcher_id: dead.id, ...errorFields(error) });
    }
    this.#expiring.delete(dead.id);
  }
}
