ALTER TABLE "incidents" ADD COLUMN "began_at" timestamp (3) with time zone;--> statement-breakpoint
UPDATE "incidents" SET "began_at" = least("opened_at", (
  SELECT min((a."cause" #>> '{first_failure,at}')::timestamptz) FROM "alerts" a WHERE a."incident_id" = "incidents"."id"));
