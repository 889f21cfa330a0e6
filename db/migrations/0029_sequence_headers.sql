ALTER TABLE "delivery_attempts" ADD COLUMN "sent_number" bigint;--> statement-breakpoint
ALTER TABLE "delivery_attempts" ADD COLUMN "sent_settled" bigint;--> statement-breakpoint
ALTER TABLE "outbox_sequences" ADD COLUMN "unlogged" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "review_history" ADD COLUMN "unlogged" bigint;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "sequence_headers" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- The first event that is neither delivered nor given up, for X-SVC-Settled (contract 7.19).
CREATE INDEX "outbox_unsettled" ON "outbox" ("subscription_id", "is_held", "sequence") WHERE not is_test and round = 1 and (skipped_at is null or is_held);