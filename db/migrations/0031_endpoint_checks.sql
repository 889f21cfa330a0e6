CREATE TABLE "endpoint_checks" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"subscription_id" text collate "C" NOT NULL,
	"partner_id" integer NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"reason" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	"started_at" timestamp (3) with time zone,
	"finished_at" timestamp (3) with time zone,
	"findings" json
);
--> statement-breakpoint
ALTER TABLE "endpoint_checks" ADD CONSTRAINT "endpoint_checks_subscription_id_webhook_subscriptions_id_fk" FOREIGN KEY ("subscription_id") REFERENCES "public"."webhook_subscriptions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "endpoint_checks_open" ON "endpoint_checks" USING btree ("subscription_id") WHERE state in ('pending', 'running');--> statement-breakpoint
alter table endpoint_checks
  add constraint endpoint_checks_state_check check (state in ('pending', 'running', 'done', 'interrupted')),
  add constraint endpoint_checks_reason_check check
    (reason in ('process_ended', 'subscription_changed', 'secret_unreadable', 'own_failure')),
  add constraint endpoint_checks_started check (state = 'interrupted' or (state = 'pending') = (started_at is null)),
  add constraint endpoint_checks_finished check ((state in ('done', 'interrupted')) = (finished_at is not null)),
  add constraint endpoint_checks_found check ((state = 'done') = (findings is not null)),
  add constraint endpoint_checks_interrupted check ((state = 'interrupted') = (reason is not null));--> statement-breakpoint
-- Finds the newest checks of a partner, for the limits of its checks and reports.
create index endpoint_checks_partner on endpoint_checks (partner_id, id);--> statement-breakpoint
insert into maintenance_jobs (name, next_at) values ('checks', now()), ('endpoint_checks', now());
