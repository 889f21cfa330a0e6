-- review_history becomes the log of the immediate subscriptions: an event that one of them gets carries its sequence, and
-- an offset says how far the subscription is. `outbox` keeps the entries that are not in the log, or that the offset has
-- passed before they were settled.
alter table webhook_subscriptions add column number integer generated always as identity;
alter table webhook_subscriptions add constraint webhook_subscriptions_number_key unique (number);
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

-- Updated with every commit of attempts: with room in its pages no update touches an index.
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

-- What was queued or skipped before stays a row of `outbox`. What was skipped ahead of everything that is queued is behind
-- `skipped_through`, so that nothing walks over it.
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
-- How many expired and when; numbers below 1 name no entry.
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
create index outbox_skipped on outbox (skipped_at) where skipped_at is not null;
