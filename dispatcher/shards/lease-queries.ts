import { and, asc, eq, exists, inArray, isNull, sql } from "drizzle-orm";

import type { Db, Tx } from "../../db/client.ts";
import { dispatchers, shards } from "../../db/schema/dispatchers.ts";
import { rows, statement } from "../../db/statement.ts";
import { SHARDS } from "../../src/outbox/schedule.ts";

/*
 * Leases say who delivers what. A dispatcher's row is its lease; shards refer to the row of their owner. Each renewal
 * moves the row on, and who stands still for too long before the eyes of another is declared dead by it: the row is
 * deleted, its shards are free at once, and because every commit first locks the writer's own row, the dead can write
 * nothing more. Nothing that the dead had to do is looked at for that: whoever claims the shards finds them orphaned, and
 * marks what it repeats. Shards that move between the living are given up by their owner after its last request for them
 * has ended.
 */

/** Who saw for so long, by its own clock, that a lease was not renewed may end it. */
export const LEASE_TTL_MS = 3_500;
/** How often a lease is renewed. */
export const LEASE_RENEW_MS = 1_000;
/** How long after a renewal something new may be sent: it ends well before anybody else may take over. */
export const LEASE_SAFE_MS = 2_500;
/** How often a dispatcher looks at the heartbeats of the others: a death is seen up to twice this after the TTL. */
export const LEASE_WATCH_MS = 200;
/** How often one looks that is alone, whether another has joined. */
export const LEASE_GLANCE_MS = 1_000;
/** A look that comes later than this after the one before it begins anew: the others may not have reached Postgres either. */
export const LEASE_BLIND_MS = 2_000;

/** One holding of a shard. */
export interface Claim {
  /** How often the shard has been claimed. */
  readonly epoch: number;
  /** An earlier holder died, and the first entries of its lanes may have been sent already. */
  readonly orphaned: boolean;
}

/** The row of a dispatcher as it was read: `renewedAt` moves with each renewal and is no time to anybody else. */
export interface Heartbeat {
  readonly id: string;
  readonly renewedAt: Date;
}

/** How many shards a dispatcher should hold. All compute the same: of a remainder the first ones by id get one each. */
export function fairShare(living: readonly string[], id: string): number {
  const sorted = living.toSorted();
  const rank = sorted.indexOf(id);
  if (rank < 0) return 0;
  return Math.floor(SHARDS / sorted.length) + (rank < SHARDS % sorted.length ? 1 : 0);
}

// What updates by a list is SQL.

const NOW = sql`now()`;
const MIB = 1_048_576;
const CLAIM = { id: shards.id, epoch: shards.epoch, orphaned: shards.orphaned };

/** The leases as the dispatcher uses them; the simulation has its own. */
export type Leases = ReturnType<typeof createLeases>;

/** `renewals` is for the renewals alone: they must not wait for a connection that does anything else. */
export function createLeases(db: Db, renewals: Db) {
  /** Gives up shards, each only if it still has this epoch; `orphaned` of the claim says in which state. */
  const release = async (id: string, claims: ReadonlyMap<number, Claim>) => {
    const given = Array.from(claims, ([shard, claim]) => ({ id: shard, ...claim }));
    if (given.length > 0) await db.run(releasing, { id, given });
  };
  return {
    async join(id: string) {
      await renewals
        .insert(dispatchers)
        .values({ id, startedAt: NOW, renewedAt: NOW })
        .onConflictDoNothing();
    },
    /**
     * Renews the lease and answers the time by the clock of Postgres; undefined if another process has ended the lease.
     * `renewed_at` moves on even if the clock of Postgres stands still or steps back, because other processes only compare
     * it with the value that they read before.
     */
    async renew(id: string): Promise<Date | undefined> {
      const { renewedAt } = dispatchers;
      const [renewed] = await renewals
        .update(dispatchers)
        .set({
          renewedAt: sql`greatest(now(), ${renewedAt} + interval '1 millisecond')`,
          memoryMb: Math.round(process.memoryUsage.rss() / MIB),
        })
        .where(eq(dispatchers.id, id))
        .returning({ now: NOW.mapWith(renewedAt) });
      return renewed?.now;
    },
    /**
     * Claims free shards up to the fair share. Answers all shards that this dispatcher holds now, and how many of them it
     * has to give up for the others.
     */
    async assign(id: string) {
      const found = await db
        .select({ dispatcher: dispatchers.id, claim: CLAIM })
        .from(dispatchers)
        .leftJoin(shards, and(eq(shards.dispatcherId, dispatchers.id), eq(dispatchers.id, id)))
        .orderBy(asc(dispatchers.id), asc(shards.id));
      const owned = found.flatMap(({ claim }) => claim ?? []);
      const living = [...new Set(found.map(({ dispatcher }) => dispatcher))];
      const missing = fairShare(living, id) - owned.length;
      const claimed = missing > 0 ? await claimShards(db, id, missing) : [];
      const all = [...owned, ...claimed].map(({ id: shard, ...claim }) => [shard, claim] as const);
      const owns: ReadonlyMap<number, Claim> = new Map(all);
      return { owned: owns, surplus: Math.max(0, -missing) };
    },
    heartbeats: (): Promise<readonly Heartbeat[]> => db.run(allHeartbeats, {}),
    bury: (dead: Heartbeat) => db.transaction((tx) => buryDispatcher(tx, dead)),
    release,
    /** Gives up these shards like `release`, all others as they are, and the lease. */
    async leave(id: string, claims: ReadonlyMap<number, Claim>) {
      await release(id, claims);
      // Frees with it what it still holds.
      await db.delete(dispatchers).where(eq(dispatchers.id, id));
    },
  };
}

const allHeartbeats = statement({
  name: "leases.heartbeats",
  // Five times a second: the driver does not prepare what the builder makes without a parameter.
  columns: { id: dispatchers.id, renewedAt: dispatchers.renewedAt },
  text: () => sql`select id, renewed_at as "renewedAt" from dispatchers order by id`,
});

/**
 * Ends the lease of the dead and frees its shards, as orphans; answers how many these were, undefined if it renewed its
 * lease after all or somebody was faster. Waits for a commit that is under way there, and only then looks at the shards,
 * because that may be a claim. The three statements go to the server at once: a busy process would wait for each answer.
 */
async function buryDispatcher(tx: Tx, dead: Heartbeat): Promise<number | undefined> {
  const stillDead = and(eq(dispatchers.id, dead.id), eq(dispatchers.renewedAt, dead.renewedAt));
  const row = () => tx.select({ id: dispatchers.id }).from(dispatchers).where(stillDead);
  const freed = tx
    .update(shards)
    .set({ dispatcherId: null, orphaned: true })
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
    .where(and(inArray(shards.id, free), exists(self)))
    .returning(CLAIM);
}

/** By epoch: a release that is carried out late must not take away what was claimed again since. */
const releasing = statement({
  name: "leases.releaseShards",
  // Updates by a parameter that is a table.
  params: { id: dispatchers.id, given: rows(CLAIM) },
  text: ({ id, given }) => sql`
    update shards s set dispatcher_id = null, orphaned = given.orphaned
      from ${given}
     where s.id = given.id and s.epoch = given.epoch and s.dispatcher_id = ${id}`,
});
