import { connect } from "../db/client.ts";
import { LIMITS } from "../db/limits.ts";
import type { PoolWatches } from "../db/pool-watch.ts";

/** A connection that only some moments need is closed after so long. */
const IDLE_S = 30;

/**
 * The connections of a dispatcher, by what must not wait for what. With a single connection of `max`, leases and readiness share it, so that a dispatcher has two sessions: what waits
 * there makes it look later after the others, which look after one another, and never renews its own lease later.
 */
export function openPools(url: string, max: number, watches: PoolWatches) {
  const open = (
    role: string,
    limits: keyof typeof LIMITS,
    more: { max?: number; idleS?: number },
  ) =>
    connect(url, { max: 1, name: `reviewrelay-${role}`, watches, limits: LIMITS[limits], ...more });
  const db = open("dispatcher", "dispatch", { max });
  const apart = (...args: Parameters<typeof open>) => (max === 1 ? db : open(...args));
  const pools = {
    db,
    // Renewals wait for nothing else, not for the rest of what leases are about either.
    renewals: open("renewals", "leases", {}),
    leases: apart("leases", "leases", {}),
    readiness: apart("ready", "readiness", { idleS: IDLE_S }),
    // Open only while this process keeps house.
    upkeep: open("upkeep", "upkeep", { idleS: IDLE_S }),
    indexing: open("indexing", "indexing", { idleS: IDLE_S }),
  };
  return {
    ...pools,
    async close() {
      await Promise.all([...new Set(Object.values(pools))].map((pool) => pool.close()));
    },
  };
}
