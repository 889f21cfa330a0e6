CREATE TABLE "audit_webhooks" (
	"id" text PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"sealed_secret" text NOT NULL,
	"version" integer NOT NULL,
	"after_id" bigint NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"failed_at" timestamp (3) with time zone,
	"next_at" timestamp (3) with time zone NOT NULL,
	"delivered_at" timestamp (3) with time zone,
	"lost_rows" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"updated_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "review_sites" ADD COLUMN "sealed_previous_secret" text;--> statement-breakpoint
ALTER TABLE "review_sites" ADD COLUMN "previous_secret_expires_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "review_sites" ADD COLUMN "requires_timestamp" boolean DEFAULT false NOT NULL;--> statement-breakpoint
alter table review_sites
  add constraint review_sites_previous_secret
    check ((sealed_previous_secret is null) = (previous_secret_expires_at is null));--> statement-breakpoint
alter table audit_webhooks
  add constraint audit_webhooks_one check (id = 'platform'),
  add constraint audit_webhooks_failed check (
    (failures = 0) = (failed_at is null) and (failed_at is null) = (last_error is null));--> statement-breakpoint
insert into maintenance_jobs (name, next_at) values ('audit_webhook', now()), ('provider_secrets', now());
