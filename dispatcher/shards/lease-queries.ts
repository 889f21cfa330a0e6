import { and, asc, eq, exists, inArray, isNull, sql } from "drizzle-orm";

import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { dispatchers, shards } from "../../db/schema/dispatchers.ts";
import { rows, statement } from "../../db/statement.ts";
import type { Claim } from "./claim.ts";
import type { Heartbeat } from "./heartbeats.ts";

// What updates by a list is SQL.

const NOW = sql`now()`;
const MIB = 1_048_576;

/** Writes the row of the lease, or leaves it where an earlier try wrote it and its answer was lost. */
export async function insertDispatcher(db: Db, id: string): Promise<void> {
  await db.insert(dispatchers).values({ id, startedAt: NOW, renewedAt: NOW }).onConflictDoNothing();
}

/**
 * Answers the time by the clock of Postgres; undefined if somebody declared this dispatcher dead. `renewed_at` moves on
 * even if that clock stands still or steps back, because others look for nothing but a movement.
 */
export async function renewDispatcher(db: Db, id: string): Promise<Date | undefined> {
  const { renewedAt } = dispatchers;
  const [renewed] = await db
    .update(dispatchers)
    .set({
      renewedAt: sql`greatest(now(), ${renewedAt} + interval '1 millisecond')`,
      memoryMb: Math.round(process.memoryUsage.rss() / MIB),
    })
    .where(eq(dispatchers.id, id))
    .returning({ now: NOW.mapWith(renewedAt) });
  return renewed?.now;
}

const allHeartbeats = statement({
  name: "leases.heartbeats",
  reason: "Five times a second: the driver does not prepare what the builder makes without a parameter.",
  params: {},
  columns: { id: dispatchers.id, renewedAt: dispatchers.renewedAt },
  text: () => sql`select id, renewed_at as "renewedAt" from dispatchers order by id`,
});

export function heartbeats(db: Db): Promise<Heartbeat[]> {
  return db.run(allHeartbeats, {});
}

/**
 * Ends the lease of the dead and frees its shards, as orphans; answers how many these were, undefined if it renewed its
 * lease after all or somebody was faster. Waits for a commit that is under way there, and only then looks at the shards,
 * because that may be a claim. The three statements go to the server at once: a busy process would wait for each answer.
 */
export async function buryDispatcher(tx: Tx, dead: Heartbeat): Promise<number | undefined> {
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

type ClaimedShard = readonly [shard: number, claim: Claim];

const CLAIM = { id: shards.id, epoch: shards.epoch, orphaned: shards.orphaned };

/** All dispatchers, and the shards of this one. */
export async function shares(
  db: Db,
  id: string,
): Promise<{ readonly living: string[]; readonly owned: ClaimedShard[] }> {
  const found = await db
    .select({ dispatcher: dispatchers.id, claim: CLAIM })
    .from(dispatchers)
    .leftJoin(shards, and(eq(shards.dispatcherId, dispatchers.id), eq(dispatchers.id, id)))
    .orderBy(asc(dispatchers.id), asc(shards.id));
  const claims = found.flatMap(({ claim }) => (claim === null ? [] : [claim]));
  return {
    living: [...new Set(found.map(({ dispatcher }) => dispatcher))],
    owned: claims.map(({ id: shard, ...claim }) => [shard, claim]),
  };
}

export async function claimShards(db: Db, id: string, limit: number): Promise<ClaimedShard[]> {
  const free = db
    .select({ id: shards.id })
    .from(shards)
    .where(isNull(shards.dispatcherId))
    .orderBy(asc(shards.id))
    .limit(limit)
    .for("update", { skipLocked: true });
  const self = db.select().from(dispatchers).where(eq(dispatchers.id, id));
  const claimed = await db
    .update(shards)
    .set({ dispatcherId: id, epoch: sql`${shards.epoch} + 1` })
    .where(and(inArray(shards.id, free), exists(self)))
    .returning(CLAIM);
  return claimed.map(({ id: shard, ...claim }) => [shard, claim]);
}

const releasing = statement({
  name: "leases.releaseShards",
  reason: "Updates by a parameter that is a table.",
  params: {
    id: dispatchers.id,
    given: rows({ id: shards.id, epoch: shards.epoch, orphaned: shards.orphaned }),
  },
  columns: {},
  text: ({ id, given }) => sql`
    update shards s set dispatcher_id = null, orphaned = given.orphaned
      from ${given}
     where s.id = given.id and s.epoch = given.epoch and s.dispatcher_id = ${id}`,
});

/** By epoch: a release that is carried out late must not take away what was claimed again since. */
export async function releaseShards(
  db: Db,
  id: string,
  claims: ReadonlyMap<number, Claim>,
): Promise<void> {
  const given = Array.from(claims, ([shard, claim]) => ({ id: shard, ...claim }));
  await db.run(releasing, { id, given });
}

/** Frees with it what it still holds. */
export async function deleteDispatcher(db: DbOrTx, id: string): Promise<void> {
  await db.delete(dispatchers).where(eq(dispatchers.id, id));
}
