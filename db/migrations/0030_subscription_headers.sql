ALTER TABLE "delivery_attempts" ADD COLUMN "header_names" text;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "header_names" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "sealed_headers" text;--> statement-breakpoint
-- The names are those of the sealed headers, so there are either both or none.
ALTER TABLE "webhook_subscriptions" ADD CONSTRAINT "webhook_subscriptions_headers" CHECK (("header_names" = '{}') = ("sealed_headers" is null));
