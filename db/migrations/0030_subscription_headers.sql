ALTER TABLE "delivery_attempts" ADD COLUMN "header_names" text;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "header_names" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook_subscriptions" ADD COLUMN "sealed_headers" text;--> statement-breakpoint
-- The names are those of the sealed headers, so there are either both or none.
ALTER TABLE "webhook_subscriptions" ADD CONSTRAINT "webhook_subscriptions_headers" CHECK (("header_names" = '{}') = ("sealed_headers" is null));--> statement-breakpoint
-- Headers are sent only to the URL for which they were written. A process of an earlier version changes the URL, or
-- deletes the subscription, without them.
create function forget_headers() returns trigger language plpgsql as $$
begin
  new.header_names := '{}';
  new.sealed_headers := null;
  return new;
end $$;--> statement-breakpoint
do $migration$ begin
  execute format('alter function forget_headers() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $migration$;--> statement-breakpoint
create trigger webhook_subscriptions_forget_headers before update of webhook_url, state on webhook_subscriptions
  for each row
  when (new.sealed_headers = old.sealed_headers and (new.webhook_url <> old.webhook_url or new.state = 'deleted'))
  execute function forget_headers();
