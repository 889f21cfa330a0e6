import type { RawDb } from "../../db/client.ts";
import { ensurePartitions, ulidFloor } from "../../db/partitions.ts";

/**
 * Inserts attempt records that began at an instant, spread evenly over `subscriptions`. Their ULIDs carry the instant, which
 * decides on the partition.
 */
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

/** Counts the attempts in each partition, by its name. */
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

/** The search path of the connections that read the clock of `fakeServerClock`. */
export const FAKE_CLOCK = "public, pg_catalog";

/**
 * Shadows `now()` and `clock_timestamp()` with functions in schema `public`, and answers a function that sets how far they
 * run ahead. It works for connections with the search path `FAKE_CLOCK`.
 */
export async function fakeServerClock(db: RawDb): Promise<(ahead: string) => Promise<void>> {
  await db.sql.unsafe(`
    create table fake_clock (ahead interval not null);
    insert into fake_clock values ('0');
    create function public.now() returns timestamptz language sql stable as
      'select pg_catalog.now() + (select ahead from fake_clock)';
    create function public.clock_timestamp() returns timestamptz language sql volatile as
      'select pg_catalog.clock_timestamp() + (select ahead from fake_clock)'`);
  return async (ahead) =>
    void (await db.sql`update fake_clock set ahead = ${ahead}::text::interval`);
}

/**
 * Drops the partitions of past days and makes those of today. The template database may have been made before
 * midnight.
 */
export async function beginToday(db: RawDb, now: Date): Promise<void> {
  const today = partitionOf(now).slice(-8);
  for (const name of await partitions(db))
    if (/_\d{8}$/.test(name) && name.slice(-8) < today) await db.sql.unsafe(`drop table ${name}`);
  await ensurePartitions(db, now);
}
