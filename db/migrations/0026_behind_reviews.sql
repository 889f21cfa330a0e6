alter table outbox add column behind_until timestamp (3) with time zone;--> statement-breakpoint
-- Loads with lanes by review look at an entry from the first of these times on (`lookAt` in db/log.ts).
drop index outbox_due;--> statement-breakpoint
create index outbox_due on outbox (shard, subscription_id, coalesce(due_at, behind_until), sequence) where not is_test and skipped_at is null;
