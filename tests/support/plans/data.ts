// Data of tests/integration/db/plans.test.ts: one subscription with nearly all of the
// outbox and a tenth of the attempts, many subscriptions with few rows, and a slot for batches.
import type { RawDb, RawTx } from "../../../db/client.ts";
import { indexEndedDays, partitionsAhead } from "../../../db/partitions.ts";
import { SHARDS } from "../../../src/outbox/schedule.ts";

export interface PlanSizes {
  /** Rows of review_history; as many are queued for one subscription. */
  readonly queued: number;
  readonly attempts: number;
  /** Days of attempts, including today. */
  readonly days: number;
  /** The number of other subscriptions. */
  readonly others: number;
  /** Batch slots, of which one is due. */
  readonly batches: number;
}

const DAY_MS = 86_400_000;
const SEED_ROWS = 50;
/** How many entries each of the others has queued. */
const QUEUED_BY_OTHERS = 2;
/** Attempts of older days store their requests, as before bodies were composed again on demand. */
const OLD_BACK = 2;

/** Returns how many attempts the hot subscription has per day. */
export const hotPerDay = ({ attempts, days }: PlanSizes): number => Math.ceil(attempts / days / 10);

/** Builds ids with the length of ULIDs. */
const idOf = (kind: string, n: number) => `${kind}${String(n).padStart(26 - kind.length, "0")}`;
const idSql = (kind: string, n: string) =>
  `'${kind}' || lpad((${n})::text, ${26 - kind.length}, '0')`;

/** Event ids differ at their beginning, as the times of ULIDs do, because the index of attempts uses the beginning. */
const NUMBER = 12;
export const eventId = (n: number) =>
  `${String(n).padStart(NUMBER, "0")}${"EVENT".padEnd(26 - NUMBER, "0")}`;
const eventIdSql = (kind: string, n: string) =>
  `lpad((${n})::text, ${NUMBER}, '0') || '${kind.padEnd(26 - NUMBER, "0")}'`;

interface PlanKey {
  readonly id: string;
  readonly shard: number;
  readonly partnerId: number;
}

const keyOf = (n: number): PlanKey => ({ id: idOf("SUB", n), shard: n % SHARDS, partnerId: n + 1 });

/** The subscription with the long queue; its partner also has the due batch slot. */
const HOT_N = SHARDS + 1;
export const HOT = keyOf(HOT_N);
export const HOT_BATCH: PlanKey = { ...HOT, id: idOf("BAT", HOT_N) };
/** A subscription of the same shard, just before the hot one in the index. */
export const NEIGHBOUR = keyOf(HOT_N - SHARDS);
/**
 * A subscription with as many rows of `outbox` as the hot one has events in its log. They are in a shard that no other
 * statement reads.
 */
export const WITH_ROWS = { ...keyOf(HOT_N + 1), shard: SHARDS };
/**
 * A subscription with lanes by review, of which `WAITING` reviews wait for a retry, each with its own row and with one that is
 * postponed behind it. The offset is behind all of them.
 */
export const BY_REVIEW = { ...keyOf(HOT_N + 2), shard: SHARDS };
const WAITING = 20_000;
/**
 * A subscription with lanes by review and sequence headers. Its first waiting row comes behind as many rows that were
 * skipped one by one as the hot one has events in its log.
 */
export const NUMBERED = { ...keyOf(HOT_N + 3), shard: SHARDS };
export const other = (n: number) => keyOf(n < HOT_N ? n : n + 1);

/** The plan of half of the accounts, and the plan of the ten oldest ones. The others have 18 plans. */
export const PLANS = { many: 1, few: 2 } as const;

/** Disables autovacuum, so that the server does not analyse the tables itself. */
const UNATTENDED = `
  do $$ declare name regclass; begin
    for name in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
      execute format('alter table %s set (autovacuum_enabled = false)', name);
    end loop;
  end $$`;

/** Inserts partners, subscriptions and a few rows in each table, as after a first day. */
export async function seedPlans(db: RawDb, { others, batches }: PlanSizes): Promise<void> {
  const subscriptions = Math.max(others + 1, batches);
  await db.sql.unsafe(UNATTENDED);
  await apart(db, async (tx) => {
    await tx.sql.unsafe(`
      insert into companies (id, type, name, primary_color, created_at) overriding system value
        values (1, 'platform', 'Platform', '#000000', now());
      insert into companies (id, type, name, primary_color, created_at) overriding system value
        select n + 1, 'partner', 'Partner', '#000000', now() from generate_series(1, ${subscriptions}) n;
      insert into plans (id, name, features) overriding system value
        select n, 'Plan ' || n, '{}' from generate_series(1, 20) n;
      insert into stores (id, account_id, partner_id, name) overriding system value values (1, 1, 2, 'Store');
      insert into review_sites (id, slug, name, sealed_secret) overriding system value values (1, 'site', 'Site', '');
      insert into store_review_sites (id, store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
        overriding system value select n, n, 1, 1, 2, true, true from generate_series(1, ${SEED_ROWS}) n;
      insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at) overriding system value
        select n, 2, 1, 1, 1, 'ext-' || n, 5, 'Fine', now(), now(), now() from generate_series(1, 1000) n;
      select setval('reviews_id_seq', 1500000000);
      insert into dispatchers (id, started_at, renewed_at)
        select ${idSql("DISPATCHER", "n")}, now(), now() + interval '1 day' from generate_series(1, 4) n;
      update shards set dispatcher_id = ${idSql("DISPATCHER", "id / 16 + 1")}, epoch = 1 where id >= 4;
      insert into stats_progress (counted_until) values (date_bin('5 minutes', now() - interval '1 minute', 'epoch'))`);
    await tx.sql.unsafe(`
      insert into webhook_subscriptions (number, id, partner_id, shard, label, webhook_url, delivery_kind, payload_mode,
        suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at,
        batch_interval_hours, next_batch_at)
      overriding system value
      select n, ${idSql("SUB", "n")}, n + 1, n % ${SHARDS}, 'Bench', 'http://127.0.0.1/hook', 'immediate', 'full', false,
             'subscription', 'active', '', '0000000000000000', now(), now(), null::int, null::timestamptz
        from generate_series(1, ${others + 1}) n
      union all
      select ${others + 1} + n, ${idSql("BAT", "n")}, n + 1, n % ${SHARDS}, 'Bench', 'http://127.0.0.1/hook', 'batch', 'full', false,
             'subscription', 'active', '', '0000000000000000', now(), now(), 24,
             case when n = ${HOT_N} then now() else now() + interval '20 hours' end
        from generate_series(1, ${batches}) n;
      insert into outbox_sequences (subscription_id) select id from webhook_subscriptions;
      insert into outbox_offsets (subscription_id) select id from webhook_subscriptions`);
    await addRows(tx, 1, SEED_ROWS);
  });
}

/** Fills the tables to their full sizes, without analysing them. */
export async function fillPlans(db: RawDb, sizes: PlanSizes): Promise<void> {
  await apart(db, async (tx) => {
    await addRows(tx, SEED_ROWS + 1, sizes.queued);
    await tx.sql.unsafe(`
      insert into companies (id, type, name, primary_color, partner_id, plan_id, created_at) overriding system value
        select n + 1000000, 'account', 'Account', '#000000', 1,
               case when n <= 10 then ${PLANS.few} when n % 2 = 0 then ${PLANS.many} else n % 36 / 2 + 3 end, now()
          from generate_series(1, ${sizes.queued}) n;
      insert into store_review_sites (id, store_id, review_site_id, account_id, partner_id, pull_connected, post_connected)
        overriding system value select n, n, 1, 1, 2, true, true
          from generate_series(${SEED_ROWS + 1}, ${sizes.queued}) n;
      insert into reviews (id, partner_id, account_id, store_id, store_review_site_id, external_review_id, rate, content,
                           reviewed_at, created_at, updated_at) overriding system value
        select n, 2, 1, 1, 1, 'ext-' || n, 5, 'Fine', now(), now(), now() from generate_series(1001, ${sizes.queued}) n;
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at)
      select ${WITH_ROWS.shard}, '${WITH_ROWS.id}', n + 2, ${eventIdSql("EVENT", "n")}, 'review_received', 'full', n, n % 1000 + 1, now()
        from generate_series(1, ${sizes.queued}) n;
      update webhook_subscriptions set ordering = 'review' where id = '${BY_REVIEW.id}';
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at,
                          attempt, state, due_at)
      select ${BY_REVIEW.shard}, '${BY_REVIEW.id}', n + 2, ${eventIdSql("WAITS", "n")}, 'review_received', 'full', n, n + 1000, now(),
             2, 'waiting', now() + interval '1 hour'
        from generate_series(1, ${WAITING}) n;
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at,
                          behind_until)
      select ${BY_REVIEW.shard}, '${BY_REVIEW.id}', ${WAITING} + n + 2, ${eventIdSql("BEHIND", "n")}, 'review_received', 'full', n,
             n + 1000, now(), now() + interval '1 hour'
        from generate_series(1, ${WAITING}) n;
      update outbox_offsets set settled_through = ${2 * WAITING + 2} where subscription_id = '${BY_REVIEW.id}';
      update webhook_subscriptions set sequence_headers = true where id in ('${WITH_ROWS.id}', '${NUMBERED.id}');
      update webhook_subscriptions set ordering = 'review' where id = '${NUMBERED.id}';
      insert into outbox (shard, subscription_id, sequence, event_id, event, payload_mode, review_history_id, review_id, recorded_at,
                          skipped_at)
      select ${NUMBERED.shard}, '${NUMBERED.id}', n + 2, ${eventIdSql("SKIPPED", "n")}, 'review_received', 'full', n, n % 1000 + 1, now(),
             case when n < ${sizes.queued} then now() end
        from generate_series(1, ${sizes.queued}) n;
      update outbox_offsets set settled_through = ${sizes.queued + 2} where subscription_id = '${NUMBERED.id}'`);
    await tx.sql.unsafe(`
      insert into review_history (event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                  actor, review, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal)
      select ${eventIdSql("OTHER", "n * 10 + s")}, n + 1, 1, 1, 1, 1, 'review_received',
             '{"type":"system","id":null,"name":"google"}', '{"id":1,"rate":4,"reviewer":"Ada"}', '{"rate":4}', now(), now(),
             s, n, false
        from (select n from generate_series(1, ${sizes.others + 1}) n where n <> ${HOT_N}) n, generate_series(1, ${QUEUED_BY_OTHERS}) s;
      update outbox_sequences set last_sequence = ${QUEUED_BY_OTHERS}, last_logged = ${QUEUED_BY_OTHERS}
       where subscription_id in (select id from webhook_subscriptions where delivery_kind = 'immediate' and id <> '${HOT.id}')`);
  });
  await db.sql.unsafe(`
    insert into audit_log (at, action, details)
    select now(), case when n % 10 = 0 then 'PROVIDER_AUTH_FAILED' else 'TENANT_READ' end, '{"provider":"site"}'
      from generate_series(1, ${sizes.queued}) n`);
  for (let day = 0; day < sizes.days; day++) await fillDay(db, sizes, day);
  await fillMinutes(db);
  while ((await indexEndedDays(db)).length > 0);
}

/** Adds rows `from` to `to` to the history, queued for the hot subscription and in its batch. */
async function addRows(tx: RawTx, from: number, to: number): Promise<void> {
  const kind = "case when n % 97 = 0 then 'review_removed' else 'review_received' end";
  await tx.sql.unsafe(`
    insert into review_history (id, event_id, partner_id, account_id, store_id, review_id, store_review_site_id, event,
                                actor, review, metadata, occurred_at, recorded_at, sequence, subscription_number, is_minimal)
      overriding system value
    select n, ${eventIdSql("EVENT", "n")}, ${HOT.partnerId}, 1, 1, n % 1000 + 1, 1, ${kind},
           '{"type":"system","id":null,"name":"google"}', '{"id":1,"rate":4,"reviewer":"Ada"}', '{"rate":4}', now(), now(), n, ${HOT_N}, false
      from generate_series(${from}::int, ${to}::int) n;
    select setval(pg_get_serial_sequence('review_history', 'id'), ${to});
    insert into batch_entries (subscription_id, review_history_id)
    select case when n <= ${SEED_ROWS} then '${HOT_BATCH.id}' else ${idSql("BAT", "2")} end, n
      from generate_series(${from}::int, ${Math.min(to, SEED_ROWS * 1000)}::int) n;
    -- With so many positions outside of the log, a search for a number has the whole log as its range.
    update outbox_sequences set last_sequence = ${to}, last_logged = ${to}, unlogged = ${to} where subscription_id = '${HOT.id}'`);
}

/** SQL for one character of a ULID's time. */
const character = (shift: number) =>
  `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((ms >> ${shift}) & 31)::int + 1, 1)`;

/** SQL for the milliseconds of a ULID as its first ten characters. */
const TIME = [45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map(character).join(" || ");

/** Attempts of the neighbour in minutes that are not counted in any bucket yet: more than a health request may read. */
const BUSY = 60_000;
export const BUSY_MS = 420_000;

async function fillMinutes(db: RawDb): Promise<void> {
  await apart(db, async (tx) => {
    await tx.sql.unsafe(`
      insert into delivery_attempts (id, subscription_id, sequence, event_id, event, round, attempt, started_at,
                                     duration_ms, outcome, status_code, response_truncated, payload_format, host, signature,
                                     body_digest)
      select ${TIME} || lpad(n::text, 16, '0'), '${NEIGHBOUR.id}', n, ${eventIdSql("BUSY", "n")}, 'review_received', 1, 1,
             to_timestamp(ms / 1000.0), n % 200, 'delivered', 200, false, 1, 'partner.example', sha256(''),
             substr(sha256(''), 1, 16)
        from (select n, ${Date.now() - BUSY_MS}::bigint + n * ${BUSY_MS / BUSY} as ms from generate_series(1, ${BUSY}) n) t`);
  });
}

/** Adds one day of attempts. Its partition is filled before it gets indexes, because this is the slowest part. */
async function fillDay(
  db: RawDb,
  { attempts, days, others, queued }: PlanSizes,
  back: number,
): Promise<void> {
  const isOld = back > OLD_BACK;
  const dayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - back * DAY_MS;
  const day = partitionsAhead(new Date(dayMs), 0)[0];
  if (day === undefined) throw new Error("A day has a partition of attempts.");
  // Today's attempts are spread over the part of the day that has passed.
  const spanMs = Math.min(Date.now() - dayMs, DAY_MS);
  const steps = Math.max(1, Math.floor(spanMs / 60_000));
  const perStep = Math.ceil(attempts / days / steps);
  await apart(db, async (tx) => {
    await tx.sql.unsafe(`
      create table if not exists ${day.name} partition of delivery_attempts for values from ('${day.from}') to ('${day.to}');
      alter table delivery_attempts detach partition ${day.name};
      drop table ${day.name};
      create table ${day.name} (like delivery_attempts including defaults including constraints);
      insert into ${day.name} (id, subscription_id, sequence, event_id, event, round, attempt, started_at, duration_ms,
                               outcome, status_code, request_headers, request_body, response_truncated, next_attempt_at,
                               payload_format, host, signature, body_digest)
      select prefix || lpad(n::text, 16, '0'),
             case when n % 10 = 0 then '${HOT.id}' else ${idSql("SUB", `(n * 7919 + ms / 60000) % ${others} + 1`)} end,
             n, case when n % 20 = 0 then ${eventIdSql("EVENT", `(ms / 60000 + n) % ${queued} + 1`)}
                     else ${eventIdSql("OLD", "ms / 60000 * 1000 + n % 1000")} end,
             case when n % 970 = 0 then 'review_removed' else 'review_received' end, 1, 1,
             to_timestamp(ms / 1000.0), n % 200, case when n % 100 = 0 then 'retry' else 'delivered' end, 200,
             case when ${isOld} then '{}'::json end, case when ${isOld} then '' end, false,
             case when n % 100 = 0 then now() end, case when not ${isOld} then 1 end,
             case when not ${isOld} then 'partner.example' end, case when not ${isOld} then sha256('') end,
             case when not ${isOld} then substr(sha256(''), 1, 16) end
        from (select ms, ${TIME} as prefix
                from (select ${dayMs}::bigint + step * 60000::bigint as ms from generate_series(0, ${steps - 1}) step) m) t,
             generate_series(1, ${perStep}) n;
      alter table delivery_attempts attach partition ${day.name} for values from ('${day.from}') to ('${day.to}')`);
  });
}

/** Runs work without foreign-key checks, which would take most of the time. */
async function apart(db: RawDb, work: (tx: RawTx) => Promise<void>): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.sql.unsafe(
      "set local session_replication_role = replica; set local maintenance_work_mem = '256MB'",
    );
    await work(tx);
  });
}

const TABLES = `(select oid from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'i', 'I'))`;

/** The states of the planner's statistics. */
export const STATISTICS = {
  /** Statistics of the first rows only. */
  early: async () => {},
  /** The tables were never analysed. */
  none: (db: RawDb) => forget(db, -1),
  /** The tables were analysed while they were empty. */
  empty: (db: RawDb) => forget(db, 0),
  fresh: async (db: RawDb) => {
    await db.sql.unsafe("analyze");
  },
} as const satisfies Record<string, (db: RawDb) => Promise<void>>;

async function forget(db: RawDb, tuples: number): Promise<void> {
  await db.sql.unsafe(`
    delete from pg_statistic where starelid in ${TABLES};
    update pg_class set reltuples = ${tuples}, relpages = 0 where oid in ${TABLES}`);
}
