ALTER TABLE "outbox" ADD COLUMN "is_held" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- A load of the dispatcher reads the inactive accounts of its partner (contract 10.1).
CREATE INDEX "companies_inactive" ON "companies" USING btree ("partner_id") WHERE not is_active;--> statement-breakpoint
-- Entries that were skipped, with the reason, or that are held for an inactive account.
create or replace view skipped_entries as
select o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id, o.review_id,
       o.batch_job_id, o.round, o.recorded_at, coalesce(k.reason, 'skipped') as reason,
       coalesce(o.skipped_at, k.skipped_at) as skipped_at,
       o.is_held and o.sequence > f.skipped_through as is_held
  from outbox o join outbox_offsets f on f.subscription_id = o.subscription_id
  left join lateral (
         select reason, skipped_at from outbox_skips
          where subscription_id = o.subscription_id and last >= o.sequence and o.skipped_at is null
          order by last limit 1) k on true
 where o.skipped_at is not null or o.sequence <= f.skipped_through
 union all
select s.id, h.sequence, h.event_id, h.event, false, case when h.is_minimal then 'minimal' else 'full' end, h.id,
       h.review_id, null, 1::smallint, h.recorded_at, k.reason, k.skipped_at, false
  from review_history h
  join webhook_subscriptions s on s.number = h.subscription_number
 cross join lateral (
         select first, reason, skipped_at from outbox_skips
          where subscription_id = s.id and last >= h.sequence order by last limit 1) k
 where h.sequence >= k.first;
