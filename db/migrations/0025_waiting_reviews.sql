alter table outbox add column behind_until timestamp (3) with time zone;--> statement-breakpoint
-- The time from which on loads with lanes by review look at an entry (`lookAt` in db/log.ts) comes first, so that a load
-- finds the due rows and those that never waited without a walk past the others.
create index outbox_due on outbox (shard, subscription_id, coalesce(due_at, behind_until), sequence) where not is_test and skipped_at is null;--> statement-breakpoint
-- Finds the queued rows of a review; those without a review share one lane (contract 6.7).
create index outbox_review on outbox (shard, subscription_id, coalesce(review_id, 0), sequence) where not is_test and skipped_at is null;
