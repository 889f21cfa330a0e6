import { and, asc, eq, exists, isNull, sql } from "drizzle-orm";

import type { Db, Tx } from "../../db/client.ts";
import { anyOf, anyOfQuery } from "../../db/conditions.ts";
import { dispatchers, shards } from "../../db/schema/dispatchers.ts";
import type { QuarantinedLane } from "../../src/outbox/quarantined-lane.ts";
import type { Outage } from "../http/failure.ts";
import { MAX_QUARANTINED_SHOWN } from "../store/quarantine.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";

/*
 * Leases decide which dispatcher delivers which shard. The row of a dispatcher is its lease, and each shard refers to
 * the row of its holder. A renewal changes the row. A dispatcher that sees another dispatcher's row unchanged for
 * `LEASE_TTL_MS` expires that lease: it deletes the row, which frees the shards immediately. Every commit locks the row
 * of its writer first, so the expired process can write nothing more (fencing).
 *
 * An expiry does not look at the work of the crashed process. Its shards are flagged unclean, and the next holder marks
 * the attempts that it may repeat as in doubt. A shard that moves between running dispatchers is released by its holder
 * after the last request for it has ended.
 */

/**
 * The time in milliseconds without a renewal, by the clock of the observer, after which the observer may expire a
 * lease.
 */
export const LEASE_TTL_MS = 3_500;
/** The interval in milliseconds between two renewals of a lease. */
export const LEASE_RENEW_MS = 1_000;
/**
 * The time in milliseconds after a renewal in which requests may begin. It ends well before another dispatcher may
 * take over.
 */
export const LEASE_SAFE_MS = 2_500;
/**
 * The interval in milliseconds between two reads of the heartbeats: a crash is detected at most twice this time after
 * the TTL.
 */
export const LEASE_WATCH_MS = 200;
/**
 * The interval in milliseconds at which a dispatcher that has seen no other one reads the heartbeats, to notice when
 * another one joins.
 */
export const LEASE_GLANCE_MS = 1_000;
/**
 * The gap in milliseconds between two reads of the heartbeats after which the measurement starts anew, because the
 * other dispatchers may have lost PostgreSQL, too.
 */
export const LEASE_BLIND_MS = 2_000;

/**
 * The right of one dispatcher to a shard. `epoch` is the number of times that the shard has been claimed. `unclean`: a
 * former holder crashed, so that the first entries of its lanes may have been sent already.
 */
export type Claim = Readonly<Pick<typeof shards.$inferSelect, "epoch" | "unclean">>;

/** The row of a dispatcher. `renewedAt` changes with each renewal; a reader only compares it with earlier values. */
export type Heartbeat = Readonly<Pick<typeof dispatchers.$inferSelect, "id" | "renewedAt">>;

/**
 * Returns the number of shards for a dispatcher. All dispatchers compute the same numbers: if the shards cannot be
 * divided evenly, the first ids get one more shard each.
 */
export function fairShare(living: readonly string[], id: string): number {
  const sorted = living.toSorted();
  const rank = sorted.indexOf(id);
  if (rank < 0) return 0;
  return Math.floor(SHARDS / sorted.length) + (rank < SHARDS % sorted.length ? 1 : 0);
}

/** The outage and the quarantined lanes of a dispatcher, as the API shows them. */
interface ShownState {
  outage(): Outage | undefined;
  quarantined(): readonly QuarantinedLane[];
}

const NOW = sql`now()`;
const MIB = 1_048_576;
const CLAIM_COLUMNS = { id: shards.id, epoch: shards.epoch, unclean: shards.unclean };

/** The time of PostgreSQL at a renewal, and whether the dispatcher is the only one and holds every shard. */
export interface Renewed {
  readonly now: Date;
  readonly isAlone: boolean;
}

/** The queries of the leases. The simulation implements the same type in memory. */
export type Leases = ReturnType<typeof createLeases>;

/**
 * Creates the queries of the leases on PostgreSQL. Only renewals use the database connection `renewals`, so that
 * nothing delays them.
 */
export function createLeases(db: Db, renewals: Db) {
  /**
   * Releases each shard that still has the epoch of its claim, and writes whether the shard is unclean for the next
   * holder.
   */
  const release = async (id: string, claims: ReadonlyMap<number, Claim>) => {
    if (claims.size === 0) return;
    const unclean = [...claims].filter(([, claim]) => claim.unclean).map(([shard]) => shard);
    const epochs = Array.from(claims.values(), ({ epoch }) => epoch);
    // The epochs are compared, so that a release that runs late does not take a shard from a later claim.
    const held = sql`unnest(${sql.param([...claims.keys()])}::smallint[], ${sql.param(epochs)}::bigint[])`;
    await db
      .update(shards)
      .set({ dispatcherId: null, unclean: anyOf(shards.id, unclean) })
      .where(
        and(
          eq(shards.dispatcherId, id),
          sql`(${shards.id}, ${shards.epoch}) in (select * from ${held})`,
        ),
      );
  };
  return {
    async join(id: string) {
      await renewals
        .insert(dispatchers)
        .values({ id, startedAt: NOW, renewedAt: NOW })
        .onConflictDoNothing();
    },
    /**
     * Renews the lease; returns undefined if another process has expired it. `renewed_at` grows even if the clock of
     * PostgreSQL stands still or steps back, because observers only compare it with the value that they read before.
     * The outage and the quarantined lanes are shown to operators and partners.
     */
    async renew(id: string, shown?: ShownState): Promise<Renewed | undefined> {
      const outage = shown?.outage();
      const { renewedAt } = dispatchers;
      const isAlone = sql`
        (select count(*) from ${dispatchers}) = 1
          and not exists (select from ${shards} where ${shards.dispatcherId} is distinct from ${id})`.mapWith(
        Boolean,
      );
      const [renewed] = await renewals
        .update(dispatchers)
        .set({
          renewedAt: sql`greatest(now(), ${renewedAt} + interval '1 millisecond')`,
          memoryMb: Math.round(process.memoryUsage.rss() / MIB),
          quarantined: shown?.quarantined().slice(0, MAX_QUARANTINED_SHOWN) ?? [],
          outage: outage?.part ?? null,
          outageSince: outage?.since ?? null,
        })
        .where(eq(dispatchers.id, id))
        .returning({ now: NOW.mapWith(renewedAt), isAlone });
      return renewed;
    },
    /**
     * Claims free shards up to the fair share. Returns all shards of this dispatcher, and the number of shards above
     * its share.
     */
    async assign(id: string) {
      const found = await db
        .select({ dispatcher: dispatchers.id, claim: CLAIM_COLUMNS })
        .from(dispatchers)
        .leftJoin(shards, and(eq(shards.dispatcherId, dispatchers.id), eq(dispatchers.id, id)))
        .orderBy(asc(dispatchers.id), asc(shards.id));
      const owned = found.flatMap(({ claim }) => claim ?? []);
      const living = [...new Set(found.map(({ dispatcher }) => dispatcher))];
      const missing = fairShare(living, id) - owned.length;
      const claimed = missing > 0 ? await claimShards(db, id, missing) : [];
      const all = [...owned, ...claimed].map(({ id: shard, ...claim }) => [shard, claim] as const);
      return { owned: new Map<number, Claim>(all), surplus: Math.max(0, -missing) };
    },
    heartbeats: async (): Promise<readonly Heartbeat[]> =>
      db
        .select({ id: dispatchers.id, renewedAt: dispatchers.renewedAt })
        .from(dispatchers)
        .orderBy(dispatchers.id),
    expire: (dead: Heartbeat) => db.transaction((tx) => expireLease(tx, dead)),
    release,
    /** Ends the lease. Releases these shards like `release`; the foreign key frees all other shards unchanged. */
    async leave(id: string, claims: ReadonlyMap<number, Claim>) {
      await release(id, claims);
      await db.delete(dispatchers).where(eq(dispatchers.id, id));
    },
  };
}

/**
 * Expires a lease and frees its shards as unclean. Returns the number of these shards, or undefined if the lease was
 * renewed after all or another process was faster. The row lock waits for a running commit of the holder, which may
 * be a claim, before the shards are read. The three statements are pipelined, because a busy process would lose time
 * at each response.
 */
async function expireLease(tx: Tx, dead: Heartbeat): Promise<number | undefined> {
  const stillDead = and(eq(dispatchers.id, dead.id), eq(dispatchers.renewedAt, dead.renewedAt));
  const row = () => tx.select({ id: dispatchers.id }).from(dispatchers).where(stillDead);
  const freed = tx
    .update(shards)
    .set({ dispatcherId: null, unclean: true })
    .where(and(eq(shards.dispatcherId, dead.id), exists(row())));
  const [locked, { count }] = await Promise.all([
    row().for("update"),
    freed,
    tx.delete(dispatchers).where(stillDead),
  ]);
  return locked.length === 0 ? undefined : count;
}

function claimShards(db: Db, id: string, limit: number) {
  const free = db
    .select({ id: shards.id })
    .from(shards)
    .where(isNull(shards.dispatcherId))
    .orderBy(asc(shards.id))
    .limit(limit)
    .for("update", { skipLocked: true });
  const self = db.select().from(dispatchers).where(eq(dispatchers.id, id));
  return db
    .update(shards)
    .set({ dispatcherId: id, epoch: sql`${shards.epoch} + 1` })
    .where(and(anyOfQuery(shards.id, free), exists(self)))
    .returning(CLAIM_COLUMNS);
}
