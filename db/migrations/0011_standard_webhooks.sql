ALTER TABLE "delivery_attempts" ADD COLUMN "standard_signatures" "bytea";--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "standard_webhooks" boolean DEFAULT false NOT NULL;