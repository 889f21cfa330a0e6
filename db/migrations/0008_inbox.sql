CREATE TABLE "inbox" (
	"position" bigint PRIMARY KEY NOT NULL,
	"service_id" integer NOT NULL,
	"action" jsonb NOT NULL,
	"partner_id" integer NOT NULL,
	"state" text DEFAULT 'waiting' NOT NULL,
	"errors" jsonb,
	"inserted_at" timestamp (3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "inbox_state" ON "inbox" USING btree ("state","partner_id","position");--> statement-breakpoint
create sequence inbox_position as bigint owned by inbox.position;--> statement-breakpoint
-- Gives an action its place (contract 9.8). The lock of its partner is held until the commit, so that the places of a
-- partner's actions follow the order of commits. The function runs as its owner, because a service may only insert.
create function place_in_inbox() returns trigger language plpgsql security definer set search_path from current as $$
declare
  review text := new.action ->> 'review_id';
  site text := new.action ->> 'store_review_site_id';
begin
  new.partner_id := coalesce(
    case when review ~ '^[1-9][0-9]{0,9}$' then (select partner_id from reviews where id = review::bigint) end,
    case when site ~ '^[1-9][0-9]{0,9}$' then (select partner_id from store_review_sites where id = site::bigint) end, 0);
  perform pg_advisory_xact_lock(41, new.partner_id);
  new.position := nextval('inbox_position');
  new.state := 'waiting';
  new.errors := null;
  new.inserted_at := clock_timestamp();
  return new;
end $$;--> statement-breakpoint
create trigger inbox_placed before insert on inbox for each row execute function place_in_inbox();--> statement-breakpoint
alter table inbox add constraint inbox_state_check check (state in ('waiting', 'rejected'));
