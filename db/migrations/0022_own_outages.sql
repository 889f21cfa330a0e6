ALTER TABLE "dispatchers" ADD COLUMN "outage" text;--> statement-breakpoint
ALTER TABLE "dispatchers" ADD COLUMN "outage_since" timestamp (3) with time zone;