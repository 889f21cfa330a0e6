CREATE TABLE "imports" (
	"file" text PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL,
	"lines" bigint NOT NULL,
	"digest" text NOT NULL,
	"counts" jsonb NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone
);
--> statement-breakpoint
-- An imported OAuth client keeps its id, which need not be a UUID. PostgreSQL rewrites these tables under a lock: about a second
-- for each million rows. The keys are dropped meanwhile, because their columns change one after the other.
ALTER TABLE "authentication_events" DROP CONSTRAINT "authentication_events_client_id_oauth_clients_client_id_fk";--> statement-breakpoint
ALTER TABLE "authorization_codes" DROP CONSTRAINT "authorization_codes_client_id_oauth_clients_client_id_fk";--> statement-breakpoint
ALTER TABLE "oauth_clients" DROP CONSTRAINT "oauth_clients_created_by_oauth_clients_client_id_fk";--> statement-breakpoint
ALTER TABLE "tokens" DROP CONSTRAINT "tokens_client_id_oauth_clients_client_id_fk";--> statement-breakpoint
ALTER TABLE "authentication_events" ALTER COLUMN "client_id" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "authorization_codes" ALTER COLUMN "client_id" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "oauth_clients" ALTER COLUMN "client_id" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "oauth_clients" ALTER COLUMN "created_by" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "tokens" ALTER COLUMN "client_id" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "authentication_events" ADD CONSTRAINT "authentication_events_client_id_oauth_clients_client_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."oauth_clients"("client_id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "authorization_codes" ADD CONSTRAINT "authorization_codes_client_id_oauth_clients_client_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."oauth_clients"("client_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "oauth_clients" ADD CONSTRAINT "oauth_clients_created_by_oauth_clients_client_id_fk" FOREIGN KEY ("created_by") REFERENCES "public"."oauth_clients"("client_id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_client_id_oauth_clients_client_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."oauth_clients"("client_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "review_history" ADD COLUMN "is_imported" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "is_imported" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "begins_at" timestamp (3) with time zone;--> statement-breakpoint
CREATE UNIQUE INDEX "reviews_external_id" ON "reviews" USING btree ("external_id") WHERE external_id is not null;