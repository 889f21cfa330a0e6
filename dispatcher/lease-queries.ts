import type { Db } from "../db/client.ts";

// Leases run on the clock of Postgres, the only one that all dispatchers share: a clock that jumps on one of their
// hosts must neither keep a dead one alive nor kill a living one.

export async function insertDispatcher(db: Db, id: string): Promise<void> {
  await db.sql`insert into dispatchers (id, started_at, renewed_at) values (${id}, now(), now())`;
}

/** False if somebody declared this dispatcher dead. */
export async function renewDispatcher(db: Db, id: string): Promise<boolean> {
  const { count } = await db.sql`update dispatchers set renewed_at = now() where id = ${id}`;
  return count === 1;
}

/** Waits for a commit that is under way there: it holds the row. */
export async function deleteExpiredDispatchers(db: Db, ttlMs: number): Promise<void> {
  await db.sql`delete from dispatchers where renewed_at < now() - ${ttlMs} * interval '1 millisecond'`;
}

export async function dispatcherIds(db: Db): Promise<string[]> {
  const rows = await db.sql<{ id: string }[]>`select id from dispatchers`;
  return rows.map((row) => row.id);
}

export async function shardsOf(db: Db, id: string): Promise<number[]> {
  const rows = await db.sql<
    { id: number }[]
  >`select id from shards where dispatcher_id = ${id} order by id`;
  return rows.map((row) => row.id);
}

export async function claimShards(db: Db, id: string, limit: number): Promise<number[]> {
  const rows = await db.sql<{ id: number }[]>`
    update shards set dispatcher_id = ${id}, epoch = epoch + 1
     where id in (select id from shards where dispatcher_id is null order by id limit ${limit} for update skip locked)
       and exists (select from dispatchers where id = ${id})
    returning id`;
  return rows.map((row) => row.id);
}

export async function releaseShards(db: Db, id: string, shards: readonly number[]): Promise<void> {
  await db.sql`
    update shards set dispatcher_id = null
     where dispatcher_id = ${id} and id = any(${shards}::smallint[])`;
}

/** Frees its shards with it. */
export async function deleteDispatcher(db: Db, id: string): Promise<void> {
  await db.sql`delete from dispatchers where id = ${id}`;
}
