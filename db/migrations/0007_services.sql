CREATE TABLE "service_actions" (
	"service_id" integer NOT NULL,
	"id" text NOT NULL,
	"taken_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "service_actions_service_id_id_pk" PRIMARY KEY("service_id","id")
);
--> statement-breakpoint
CREATE TABLE "services" (
	"id" integer PRIMARY KEY NOT NULL,
	"scopes" text[] NOT NULL,
	"partner_ids" integer[]
);
--> statement-breakpoint
ALTER TABLE "services" ADD CONSTRAINT "services_id_users_id_fk" FOREIGN KEY ("id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
alter table users drop constraint users_role_check, add constraint users_role_check check (role in
  ('super_admin', 'partner_owner', 'partner_admin', 'account_owner', 'account_user', 'location_user', 'service'));--> statement-breakpoint
alter table tokens
  drop constraint tokens_kind_check,
  add constraint tokens_kind_check check (kind in
    ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset', 'portal', 'service')),
  drop constraint tokens_named,
  add constraint tokens_named check ((kind in ('api_pat', 'service')) = (name is not null));
