import { and, asc, eq, exists, inArray, isNull, sql } from "drizzle-orm";

import type { Db, Tx } from "../../db/client.ts";
import { dispatchers, shards } from "../../db/schema/dispatchers.ts";
import { rows, statement } from "../../db/statement.ts";
import { fairShare, type Claim, type Heartbeat } from "./leases.ts";

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
