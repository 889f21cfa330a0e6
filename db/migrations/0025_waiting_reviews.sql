-- The due time first, so that a load finds the due rows and those that never waited without a walk past the waiting ones.
create index outbox_due on outbox (shard, subscription_id, due_at, sequence) where not is_test and skipped_at is null;--> statement-breakpoint
-- Finds the queued rows of a review; those without a review share one lane (contract 6.7).
create index outbox_review on outbox (shard, subscription_id, coalesce(review_id, 0), sequence) where not is_test and skipped_at is null;
