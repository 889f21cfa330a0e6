import { connect } from "../db/client.ts";
import { LIMITS } from "../db/limits.ts";
import type { PoolWatches } from "../db/pool-watch.ts";
import type { Config } from "../src/lib/config.ts";

/** A connection that only some moments need is closed after so long. */
const IDLE_S = 30;
/** The same of maintenance: the next run may be that of another dispatcher. */
const JOB_IDLE_S = 5;

type PoolSettings = Pick<Config, "databaseUrl" | "maintenanceDatabaseUrl" | "connections">;

/**
 * The connections of a dispatcher, by what must not wait for what. With a single connection of `max`, leases and
 * readiness share it, so that a dispatcher has two sessions: what waits there makes it look later after the others, which
 * look after one another, and never renews its own lease later.
 */
export function openPools(
  { databaseUrl, maintenanceDatabaseUrl, connections: { dispatcher: max } }: PoolSettings,
  watches: PoolWatches,
) {
  const open = (
    role: string,
    limits: keyof typeof LIMITS,
    { url = databaseUrl, ...more }: { max?: number; idleS?: number; url?: string },
  ) =>
    connect(url, { max: 1, name: `reviewrelay-${role}`, watches, limits: LIMITS[limits], ...more });
  const db = open("dispatcher", "dispatch", { max });
  const apart = (...args: Parameters<typeof open>) => (max === 1 ? db : open(...args));
  const ofOwner = { idleS: JOB_IDLE_S, url: maintenanceDatabaseUrl };
  const pools = {
    db,
    // Renewals wait for nothing else, not for the rest of what leases are about either.
    renewals: open("renewals", "leases", {}),
    leases: apart("leases", "leases", {}),
    readiness: apart("ready", "readiness", { idleS: IDLE_S }),
    // Open only while this process runs a job of maintenance that changes data or tables; so is that for indexes.
    maintenance: open("maintenance", "maintenance", ofOwner),
    indexing: open("indexing", "indexing", ofOwner),
  };
  return {
    ...pools,
    async close() {
      await Promise.all([...new Set(Object.values(pools))].map((pool) => pool.close()));
    },
  };
}
