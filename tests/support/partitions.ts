import type { RawDb } from "../../db/client.ts";
import { ensurePartitions, ulidFloor } from "../../db/partitions.ts";

/** Records of attempts that began then, of subscriptions that take turns; they go where their ids belong. */
export async function insertAttempt(
  db: Pick<RawDb, "sql">,
  at: Date,
  { count = 1, subscriptions = 1 } = {},
): Promise<void> {
  const id = ulidFloor(at).slice(0, 16);
  await db.sql`
    insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
      duration_ms, outcome, request_headers, request_body, response_truncated)
    select ${id} || lpad(n::text, 10, '0'), lpad((n % ${subscriptions}::int)::text, 26, '0'), n, 'E', 'review_received', 1, 1, ${at}, 1, 'delivered', '{}', '{}', false
      from generate_series(1, ${count}::int) n`;
}

/** How many attempts each partition holds, by its name. */
export async function attemptsByPartition(db: RawDb): Promise<Record<string, number>> {
  const rows = await db.sql<{ name: string; count: number }[]>`
    select tableoid::regclass::text as name, count(*) as count from delivery_attempts group by 1`;
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

export function partitionOf(at: Date): string {
  return `delivery_attempts_${at.toISOString().slice(0, 10).replaceAll("-", "")}`;
}

export async function partitions(db: RawDb): Promise<string[]> {
  const rows = await db.sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits
     where inhparent = 'delivery_attempts'::regclass order by 1`;
  return rows.map((row) => row.name);
}

/**
 * Puts functions in the way of Postgres' own, by which its clock can be set: for connections that are opened from now on.
 * What is asked for as `now()` or `clock_timestamp()` is ahead by what `setClock` said.
 */
export async function fakeServerClock(db: RawDb): Promise<(ahead: string) => Promise<void>> {
  await db.sql.unsafe(`
    create table fake_clock (ahead interval not null);
    insert into fake_clock values ('0');
    create function public.now() returns timestamptz language sql stable as
      'select pg_catalog.now() + (select ahead from fake_clock)';
    create function public.clock_timestamp() returns timestamptz language sql volatile as
      'select pg_catalog.clock_timestamp() + (select ahead from fake_clock)';
    do $$ begin
      execute format('alter database %I set search_path = public, pg_catalog', current_database());
    end $$`);
  return async (ahead) =>
    void (await db.sql`update fake_clock set ahead = ${ahead}::text::interval`);
}

/** Partitions as a database has that was made today: the template of the tests may be from before midnight. */
export async function beginToday(db: RawDb, now: Date): Promise<void> {
  const today = partitionOf(now).slice(-8);
  for (const name of await partitions(db))
    if (/_\d{8}$/.test(name) && name.slice(-8) < today) await db.sql.unsafe(`drop table ${name}`);
  await ensurePartitions(db, now);
}
