ALTER TABLE "companies" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "companies" ADD COLUMN "updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "stores" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "stores" ADD COLUMN "updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "store_review_sites" ADD COLUMN "external_id" text;--> statement-breakpoint
ALTER TABLE "store_review_sites" ADD COLUMN "updated_at" timestamp (3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "companies_external_id" ON "companies" USING btree ("type","external_id");--> statement-breakpoint
ALTER TABLE "stores" ADD CONSTRAINT "stores_external_id" UNIQUE("external_id");--> statement-breakpoint
ALTER TABLE "users" ADD CONSTRAINT "users_external_id" UNIQUE("external_id");--> statement-breakpoint
ALTER TABLE "store_review_sites" ADD CONSTRAINT "store_review_sites_external_id" UNIQUE("external_id");--> statement-breakpoint
-- A platform that keeps its records in step with ours asks for what has changed since (contract 10.6).
create function note_change() returns trigger language plpgsql as $$
begin
  new.updated_at := now();
  return new;
end $$;--> statement-breakpoint
create trigger companies_changed before update on companies for each row execute function note_change();--> statement-breakpoint
create trigger stores_changed before update on stores for each row execute function note_change();--> statement-breakpoint
create trigger store_review_sites_changed before update on store_review_sites
  for each row execute function note_change();--> statement-breakpoint
-- A connection is removed only if no review and no change of it was ever reported. This replaces foreign keys, which cost
-- each event several look-ups and row locks; whoever removes one keeps writers out (deleteStoreReviewSite).
create function keep_reported_connection() returns trigger language plpgsql as $$
begin
  if exists (select from reviews where store_review_site_id = old.id)
     or exists (select from review_history
                 where store_review_site_id = old.id and axis in ('pull', 'post')
                   and event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                                 'response_post_disconnected')) then
    raise exception 'connection % has reported events', old.id
      using errcode = 'foreign_key_violation', table = 'review_history';
  end if;
  return old;
end $$;--> statement-breakpoint
drop trigger store_review_sites_kept on store_review_sites;--> statement-breakpoint
create trigger store_review_sites_kept before delete on store_review_sites
  for each row execute function keep_reported_connection();
