// Inserts the history and attempts of a system that has been running for a while. Rows are inserted with few statements
// and in the order of time, so they are stored more contiguously than in reality. The API has already counted that
// period, so its charts do not include them.
import { encodeTime } from "ulid";

import type { RawDb } from "../../../db/client.ts";
import type { LiveRig } from "./rig.ts";
import type { Tenant } from "../tenants.ts";

const DAY_MS = 86_400_000;
/** Number of instants over which the rows are spread, and number of instants per statement. */
const INSTANTS = 1_000;
const AT_ONCE = 100;
const BODY = JSON.stringify({ event: "review_received", padding: "x".repeat(400) });
const REVIEW = JSON.stringify({
  id: 1,
  external_review_id: "past",
  source_platform: "google",
  rate: 4,
});
const HEADERS = JSON.stringify({ "content-type": "application/json", "x-svc-attempt": "1" });

/** Maps columns to SQL expressions. A column that a version lacks is skipped. */
type Columns = Readonly<Record<string, string>>;

const HISTORY: Columns = {
  event_id: "event_id",
  partner_id: "partner_id",
  account_id: "account_id",
  store_id: "store_id",
  review_id: "review_id",
  store_review_site_id: "site_id",
  event: "'review_received'",
  actor: `'{"type":"system","id":null,"name":"google"}'`,
  review: `'${REVIEW}'`,
  metadata: `'{"rate":4}'`,
  occurred_at: "at",
  recorded_at: "at",
};
const ATTEMPTS: Columns = {
  id: "event_id",
  subscription_id: "subscription_id",
  sequence: "0",
  event_id: "event_id",
  event: "'review_received'",
  round: "1",
  attempt: "1",
  started_at: "at",
  duration_ms: "5",
  outcome: "'delivered'",
  status_code: "200",
  request_headers: `'${HEADERS}'`,
  request_body: `'${BODY}'`,
  response_headers: `'{"content-length":"0"}'`,
  response_excerpt: "''",
  response_truncated: "false",
  payload_mode: "'full'",
  recorded_at: "at",
};

export async function insertPast({ db, options, tenants, say, stop }: LiveRig): Promise<void> {
  if (options.rows === 0) return;
  say(`Writing ${options.rows} rows of history and as many attempts …`);
  const each = Math.ceil(options.rows / INSTANTS);
  const today = Date.now() - (Date.now() % DAY_MS);
  // All rows have instants of today, because an older version has no earlier partitions.
  const step = (Date.now() - today) / (INSTANTS + 1);
  const instants = Array.from({ length: INSTANTS }, (_, n) => Math.floor(today + n * step));
  await insertReviews(db, tenants);
  const history = await insertion(db, "review_history", HISTORY);
  const attempts = await insertion(db, "delivery_attempts", ATTEMPTS);
  for (let from = 0; from < INSTANTS && !stop.aborted; from += AT_ONCE) {
    const part = instants.slice(from, from + AT_ONCE);
    const ids = part.map((at) => encodeTime(at, 10));
    for (const insert of [history, attempts])
      await asLoader(db, (sql) => sql.unsafe(insert, [ids, part, each]));
  }
  for (const table of ["review_history", "delivery_attempts", "reviews"])
    await db.sql.unsafe(`vacuum analyze ${table}`);
  await db.sql`checkpoint`;
}

/** Builds an INSERT that spreads rows over all tenants, or only over the tenant whose subscription is `$4`. */
async function insertion(db: RawDb, table: string, columns: Columns, where = ""): Promise<string> {
  const insert = await insertInto(db, table, columns);
  return `
    with tenants as (
      select row_number() over (order by s.id) - 1 as place, count(*) over () as tenants, s.id as subscription_id,
             s.partner_id, r.account_id, r.store_id, r.id as review_id, r.store_review_site_id as site_id
        from webhook_subscriptions s
        join reviews r on r.partner_id = s.partner_id and r.external_review_id = 'past' ${where}
    ), rows as (
      select t.id || lpad(upper(to_hex(n)), 16, '0') as event_id, to_timestamp(t.ms / 1000) as at, n,
             (t.number - 1) * $3::int + n as nth
        from unnest($1::text[], $2::float8[]) with ordinality as t(id, ms, number), generate_series(1, $3::int) n
    )
    ${insert}
      from rows join tenants on place = n % tenants
     order by event_id`;
}

/** Inserts recent attempts of one subscription that the statistics job has not counted yet. */
export async function insertRecent(
  db: RawDb,
  subscriptionId: string,
  { count, seconds }: { count: number; seconds: number },
): Promise<void> {
  const columns = { ...ATTEMPTS, sequence: "nth" };
  const insert = await insertion(db, "delivery_attempts", columns, "where s.id = $4");
  const endsAt = Date.now();
  const instants = Array.from({ length: INSTANTS }, (_, n) =>
    Math.floor(endsAt - seconds * 1_000 * (1 - n / INSTANTS)),
  );
  const ids = instants.map((at) => encodeTime(at, 10));
  const each = Math.ceil(count / INSTANTS);
  await asLoader(db, (sql) => sql.unsafe(insert, [ids, instants, each, subscriptionId]));
  await db.sql`vacuum analyze delivery_attempts`;
}

/** Builds the beginning of an INSERT, with those of the columns that the table has. */
export async function insertInto(db: RawDb, table: string, columns: Columns): Promise<string> {
  const rows = await db.sql<{ name: string }[]>`
    select column_name as name from information_schema.columns where table_name = ${table}`;
  const known = new Set(rows.map(({ name }) => name));
  const used = Object.entries(columns).filter(([name]) => known.has(name));
  const values = used.map(([, value]) => value).join(", ");
  return `insert into ${table} (${used.map(([name]) => name).join(", ")}) select ${values}`;
}

/** Runs `work` without foreign-key checks and without waiting for the disk. */
export async function asLoader(
  db: RawDb,
  work: (sql: RawDb["sql"]) => Promise<unknown>,
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.sql`set local session_replication_role = replica`;
    await tx.sql`set local synchronous_commit = off`;
    await work(tx.sql);
  });
}

/** Inserts one review per tenant for the history. */
export async function insertReviews(db: RawDb, tenants: readonly Tenant[]): Promise<void> {
  await db.sql`
    insert into reviews (partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                         reviewed_at, created_at, updated_at)
    select partner_id, account_id, store_id, id, 'past', 5, 'x', now(), now(), now()
      from store_review_sites where id = any(${tenants.map(({ siteId }) => siteId)}::int[])`;
}
