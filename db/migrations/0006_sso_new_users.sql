ALTER TABLE "sso_connections" ADD COLUMN "new_user_role" text;--> statement-breakpoint
ALTER TABLE "sso_connections" ADD COLUMN "new_user_store_ids" integer[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "sso_domains" ADD COLUMN "proved_at" timestamp (3) with time zone;