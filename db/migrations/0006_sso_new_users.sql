ALTER TABLE "sso_connections" ADD COLUMN "new_user_role" text;--> statement-breakpoint
ALTER TABLE "sso_connections" ADD COLUMN "new_user_store_ids" integer[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "sso_domains" ADD COLUMN "proved_at" timestamp (3) with time zone;--> statement-breakpoint
alter table sso_connections add constraint sso_connections_new_user_role_check check (new_user_role in
  ('partner_owner', 'partner_admin', 'account_owner', 'account_user', 'location_user'));
