-- Brings a database of a version before the baseline to the baseline: the migrations 0023 to 0031 of that time, the new
-- names, and the history. `bun run migrate` runs it for a database with one of the migrations 0022 to 0031; each step
-- finds out whether it is done already. docs/operations/upgrades.md describes the upgrade.

do $$ begin
  if (select max(created_at) from drizzle.__drizzle_migrations) < 1796140000000 then
    raise exception 'This database lacks migrations of the version that this upgrade begins with.';
  end if;
end $$;

-- 0024 to 0026. The creator of existing tokens is unknown. They expire within a day.
create table if not exists processes (
  id text collate "C" primary key,
  role text not null constraint processes_role_check check (role in ('api', 'dispatcher')),
  host text not null,
  pid integer not null,
  master_keys text[] not null,
  seen_at timestamptz(3) not null
);
alter table tokens
  add column if not exists parent_jti text collate "C"
    constraint tokens_parent_jti_fkey references tokens (jti) on delete cascade,
  drop constraint if exists tokens_made,
  add constraint tokens_made check (parent_jti is null or kind in ('impersonation', 'portal')) not valid;
create index if not exists tokens_parent on tokens (parent_jti) where parent_jti is not null;
alter table batch_entries drop constraint if exists batch_entries_subscription_id_fkey;
alter table outbox_sequences add column if not exists batch_skipped_through bigint not null default 0;

-- 0027: review_history becomes the log of the immediate subscriptions. Queued and skipped entries stay rows of `outbox`.
-- Entries that were skipped ahead of all queued ones are behind `skipped_through`, so that no query walks over them.
-- The rows of outbox_skips with a number below 1 name no entry. They count expired entries.
do $$ begin
  if to_regclass('outbox_marks') is not null then
    alter table webhook_subscriptions
      add column number integer generated always as identity constraint webhook_subscriptions_number_key unique;
    create index webhook_subscriptions_immediate on webhook_subscriptions (shard)
      where state <> 'deleted' and delivery_kind = 'immediate';
    alter table review_history
      add column sequence bigint,
      add column subscription_number integer,
      add column is_minimal boolean,
      add column gap integer,
      add constraint review_history_log_entry check (num_nulls(sequence, subscription_number, is_minimal) in (0, 3));
    create unique index review_history_log on review_history (subscription_number, sequence) where sequence is not null;
    alter table outbox_sequences add column last_logged bigint not null default 0;
    alter table outbox add column skipped_at timestamptz(3);
    create table outbox_offsets (
      subscription_id text collate "C" primary key,
      settled_through bigint not null default 0,
      skipped_through bigint not null default 0
    ) with (fillfactor = 20);
    create table outbox_skips (
      subscription_id text collate "C" not null,
      first bigint not null,
      last bigint not null,
      reason text not null check (reason in ('deleted', 'expired', 'skipped')),
      entries integer,
      skipped_at timestamptz(3) not null,
      primary key (subscription_id, last)
    );
    insert into outbox_offsets (subscription_id, skipped_through)
    select s.id, greatest(m.through, ended.through)
      from webhook_subscriptions s
     cross join lateral (
             select coalesce((select through from outbox_marks where subscription_id = s.id), 0) as through) m
      left join lateral (
             select sequence from outbox
              where shard = s.shard and subscription_id = s.id and sequence > m.through order by sequence limit 1) head on true
     cross join lateral (
             select coalesce(max(sequence), 0) as through from settled_entries
              where subscription_id = s.id and (head.sequence is null or sequence < head.sequence)) ended;
    insert into outbox_skips (subscription_id, first, last, reason, skipped_at)
    select subscription_id, through + 1, through, reason, settled_at from outbox_marks;
    insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
    select subscription_id, 0, -row_number() over (partition by subscription_id order by settled_at), 'expired', count(*), settled_at
      from settled_entries where reason = 'expired' group by subscription_id, settled_at;
    insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, review_history_id, review_id,
                        batch_job_id, round, recorded_at, skipped_at)
    select s.shard, e.subscription_id, e.sequence, e.event_id, e.event, e.is_test, e.payload_mode, e.review_history_id,
           e.review_id, e.batch_job_id, e.round, e.recorded_at, e.settled_at
      from settled_entries e join webhook_subscriptions s on s.id = e.subscription_id
        on conflict do nothing;
    drop table settled_entries, outbox_marks;
    create view queued_entries as
    select o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id, o.review_id,
           o.batch_job_id, o.round, o.recorded_at, o.attempt, o.state, o.due_at
      from outbox o join outbox_offsets f on f.subscription_id = o.subscription_id
     where o.sequence > f.skipped_through and o.skipped_at is null
     union all
    select s.id, h.sequence, h.event_id, h.event, false, case when h.is_minimal then 'minimal' else 'full' end, h.id,
           h.review_id, null, 1::smallint, h.recorded_at, 1::smallint, 'pending', null
      from review_history h
      join webhook_subscriptions s on s.number = h.subscription_number
      join outbox_offsets f on f.subscription_id = s.id
     where h.sequence > f.settled_through;

    create view skipped_entries as
    select o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id, o.review_id,
           o.batch_job_id, o.round, o.recorded_at, coalesce(k.reason, 'skipped') as reason,
           coalesce(o.skipped_at, k.skipped_at) as skipped_at
      from outbox o join outbox_offsets f on f.subscription_id = o.subscription_id
      left join lateral (
             select reason, skipped_at from outbox_skips
              where subscription_id = o.subscription_id and last >= o.sequence and o.skipped_at is null
              order by last limit 1) k on true
     where o.skipped_at is not null or o.sequence <= f.skipped_through
     union all
    select s.id, h.sequence, h.event_id, h.event, false, case when h.is_minimal then 'minimal' else 'full' end, h.id,
           h.review_id, null, 1::smallint, h.recorded_at, k.reason, k.skipped_at
      from review_history h
      join webhook_subscriptions s on s.number = h.subscription_number
     cross join lateral (
             select first, reason, skipped_at from outbox_skips
              where subscription_id = s.id and last >= h.sequence order by last limit 1) k
     where h.sequence >= k.first;
    create index outbox_skipped on outbox (skipped_at) where skipped_at is not null;
  end if;
end $$;
create or replace function keep_queued_history() returns trigger language plpgsql as $$
begin
  if exists (select from outbox o
                 cross join lateral (
                  select from outbox_offsets f
                   where f.subscription_id = o.subscription_id and f.skipped_through < o.sequence offset 0) f
                 where o.event_id = old.event_id and o.skipped_at is null)
     or exists (select from webhook_subscriptions s
                 cross join lateral (
                  select from outbox_offsets f
                   where f.subscription_id = s.id and f.settled_through < old.sequence offset 0) f
                 where s.number = old.subscription_number)
     or exists (select from webhook_subscriptions s
                 cross join lateral (
                  select from batch_entries b
                   where b.subscription_id = s.id and b.review_history_id = old.id offset 0) b
                 cross join lateral (
                  select from outbox_sequences q
                   where q.subscription_id = s.id and q.batch_skipped_through < old.id offset 0) q
                 where s.partner_id = old.partner_id) then
    raise exception 'event % is still queued for a webhook', old.event_id
      using errcode = 'restrict_violation', hint = 'Delete or skip what is queued first.';
  end if;
  return old;
end $$;
create or replace trigger review_history_kept before delete on review_history
  for each row execute function keep_queued_history();

-- 0028. The hourly jobs continue after the last pass, so that the first run may remove data if that pass was less than
-- two hours ago.
do $$ begin
  if to_regclass('upkeep_progress') is not null then
    create table maintenance_jobs (
      name text collate "C" primary key,
      next_at timestamptz(3) not null,
      began_at timestamptz(3),
      succeeded_at timestamptz(3),
      duration_ms integer,
      rows bigint not null default 0,
      reached text,
      failures integer not null default 0,
      last_error text,
      holder text,
      leased_until timestamptz(3),
      constraint maintenance_jobs_held check ((holder is null) = (leased_until is null))
    );
    insert into maintenance_jobs (name, next_at, began_at, succeeded_at)
    select name, passed_at + interval '1 hour', nullif(passed_at, '1970-01-01T00:00:00Z'), nullif(passed_at, '1970-01-01T00:00:00Z')
      from upkeep_progress cross join unnest(array[
             'partitions', 'day_indexes', 'history', 'attempts', 'strays', 'held_entries',
             'skipped_entries', 'batch_entries', 'mails', 'incidents', 'audit_log', 'sign_ins']) as jobs(name);
    insert into maintenance_jobs (name, next_at)
    values ('alerts', now()), ('stats', now()), ('credentials', now()), ('lost_sessions', now());
    drop table upkeep_progress;
  end if;
end $$;

-- 0029 and 0031. Deliveries wait while an index of all days is built.
do $$ begin
  if to_regclass('delivery_attempts_event') is not null then
    drop index if exists delivery_attempts_event_prefix;
    create index delivery_attempts_event_prefix on delivery_attempts (left(event_id, 15));
    drop index delivery_attempts_event;
  end if;
  if (select indexdef not like '%, event)%' from pg_indexes where indexname = 'delivery_attempts_trouble') then
    drop index delivery_attempts_trouble;
    create index delivery_attempts_trouble on delivery_attempts (subscription_id, outcome, id, event)
      where outcome <> 'delivered';
  end if;
end $$;

-- 0030.
create table if not exists recoveries (
  subscription_id text collate "C" primary key references outbox_sequences (subscription_id) on delete cascade,
  since timestamptz(3) not null,
  events text[] not null,
  through_at timestamptz(3) not null,
  through_id bigint not null,
  skipped_through bigint not null,
  batch_skipped_through bigint not null
);

-- The names of the baseline, and those that Drizzle gives to primary keys of several columns and to foreign keys.
alter table delivery_attempts rename column composer to payload_format;
alter table shards rename column orphaned to unclean;
update maintenance_jobs set name = 'default_partitions' where name = 'strays';
do $$ declare old record; begin
  for old in
    select c.conrelid::regclass as relation, c.conname, left(concat_ws('_', t.relname, k.names, r.relname, f.names,
             case c.contype when 'f' then 'fk' else 'pk' end), 63) as name
      from pg_constraint c
      join pg_class t on t.oid = c.conrelid
      left join pg_class r on r.oid = c.confrelid
     cross join lateral (select string_agg(attname, '_' order by n) as names
             from unnest(c.conkey) with ordinality as keys(key, n)
             join pg_attribute on attrelid = c.conrelid and attnum = key) k
     cross join lateral (select string_agg(attname, '_' order by n) as names
             from unnest(c.confkey) with ordinality as keys(key, n)
             join pg_attribute on attrelid = c.confrelid and attnum = key) f
     where c.connamespace = 'public'::regnamespace and not t.relispartition
       and (c.contype = 'f' or c.contype = 'p' and cardinality(c.conkey) > 1)
  loop
    execute format('alter table %s rename constraint %I to %I', old.relation, old.conname, old.name);
  end loop;
end $$;

-- The history: the database has the migrations of the baseline (`when` in db/migrations/meta/_journal.json).
truncate drizzle.__drizzle_migrations;
insert into drizzle.__drizzle_migrations (hash, created_at)
values ('baseline', 1795574029048), ('baseline', 1795574029512);
