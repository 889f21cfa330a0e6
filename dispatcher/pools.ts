import { connect, type RawDb } from "../db/client.ts";
import { LIMITS } from "../db/limits.ts";
import type { PoolWatches } from "../db/pool-watch.ts";
import type { Config } from "../src/lib/config.ts";

/** A connection that only some moments need is closed after so long. */
const IDLE_S = 30;
/** The same of maintenance: the next run may be that of another dispatcher. */
const JOB_IDLE_S = 5;

/** The connections of a dispatcher, by what must not wait for what. */
export interface Pools {
  readonly db: RawDb;
  /** Renewals wait for nothing else, not for the rest of what leases are about either. */
  readonly renewals: RawDb;
  readonly leases: RawDb;
  readonly readiness: RawDb;
  /** Open only while this process runs a job of maintenance that changes data or tables; so is that for indexes. */
  readonly maintenance: RawDb;
  readonly indexing: RawDb;
  close(): Promise<void>;
}

type PoolSettings = Pick<Config, "databaseUrl" | "maintenanceDatabaseUrl" | "connections">;

/**
 * With a single connection of `max`, leases and readiness share it, so that a dispatcher has two sessions: what waits
 * there makes it look later after the others, which look after one another, and never renews its own lease later.
 */
export function openPools(
  { databaseUrl, maintenanceDatabaseUrl, connections: { dispatcher: max } }: PoolSettings,
  watches: PoolWatches,
): Pools {
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
    renewals: open("renewals", "leases", {}),
    leases: apart("leases", "leases", {}),
    readiness: apart("ready", "readiness", { idleS: IDLE_S }),
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
