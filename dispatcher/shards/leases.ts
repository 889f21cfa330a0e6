import type { Db } from "../../db/client.ts";
import { ulidFloor } from "../../db/partitions.ts";
import type { Log } from "../../src/lib/log.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";
import { SEND_AHEAD } from "../actor/lane.ts";
import { PARALLEL_REVIEWS } from "../actor/state.ts";
import * as queries from "./lease-queries.ts";

/*
 * Leases say who delivers what. A dispatcher's row is its lease, on the clock of Postgres; shards refer to the row of
 * their owner. Whoever is found dead loses the row, its shards are free at once, and because every commit first locks
 * the writer's own row, the dead can write nothing more. Shards that move between the living are given up by
 * their owner after its last request for them has ended.
 */

/** A lease that was not renewed for so long may be taken over. */
export const LEASE_TTL_MS = 4_000;
/** How often a lease is renewed. */
export const LEASE_RENEW_MS = 1_000;
/** How long after a renewal something new may be sent: it ends well before anybody else may take over. */
export const LEASE_SAFE_MS = 3_000;

export interface Assignment {
  /** False if the row is gone, and with it everything that this process held. */
  readonly alive: boolean;
  /** All shards that are ours now, those just claimed included, with their epochs: each claim begins a new one. */
  readonly owned: ReadonlyMap<number, number>;
  /** How many shards are to be given up for the others. */
  readonly surplus: number;
}

/** What the dispatcher needs of the leases; the simulation has its own. */
export interface Leases {
  join(id: string): Promise<void>;
  /** Renews the lease and claims free shards up to the fair share; if `watchful`, also declares others dead. */
  renew(id: string, watchful: boolean): Promise<Assignment>;
  /** Gives up shards, each only if this is still its epoch. */
  release(id: string, epochs: ReadonlyMap<number, number>): Promise<void>;
  leave(id: string): Promise<void>;
}

export function createLeases(db: Db, log: Log): Leases {
  return {
    join: (id) => queries.insertDispatcher(db, id),
    async renew(id, watchful) {
      if (!(await queries.renewDispatcher(db, id)))
        return { alive: false, owned: new Map(), surplus: 0 };
      if (watchful) await buryTheDead(db, log);
      const [living, owned] = await Promise.all([
        queries.dispatcherIds(db),
        queries.shardsOf(db, id),
      ]);
      const missing = fairShare(living, id) - owned.length;
      const claimed = missing > 0 ? await queries.claimShards(db, id, missing) : [];
      return {
        alive: true,
        owned: new Map([...owned, ...claimed]),
        surplus: Math.max(0, -missing),
      };
    },
    release: (id, epochs) => queries.releaseShards(db, id, epochs),
    leave: (id) => queries.deleteDispatcher(db, id),
  };
}

/** Per lane one request under way and the answers whose commit had not come back; twice the lanes that run at once. */
const BOUNDS = {
  safeMs: LEASE_SAFE_MS,
  perLane: SEND_AHEAD + 1,
  lanes: 2 * PARALLEL_REVIEWS,
  window: 1_000,
} as const;

/** Ends the leases that ran out, and records in the same transaction what their holders may have sent. */
async function buryTheDead(db: Db, log: Log): Promise<void> {
  for (const dead of await queries.expiredDispatchers(db, LEASE_TTL_MS)) {
    const interrupted = await db.transaction(async (tx) => {
      if (!(await queries.deleteExpiredDispatcher(tx, dead))) return undefined;
      const idPrefix = ulidFloor(dead.renewedAt).slice(0, 10);
      return queries.recordInterrupted(tx, { ...dead, ...BOUNDS, idPrefix });
    });
    if (interrupted !== undefined)
      log.warn("dispatcher.lost", {
        dispatcher_id: dead.id,
        shards: dead.shards.length,
        interrupted,
      });
  }
}

/** How many shards a dispatcher should hold. All compute the same: of a remainder the first ones by id get one each. */
export function fairShare(living: readonly string[], id: string): number {
  const sorted = living.toSorted();
  const rank = sorted.indexOf(id);
  if (rank < 0) return 0;
  return Math.floor(SHARDS / sorted.length) + (rank < SHARDS % sorted.length ? 1 : 0);
}
