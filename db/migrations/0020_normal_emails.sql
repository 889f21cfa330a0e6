ALTER TABLE "users" ADD COLUMN "normal_email" text;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "shares_email" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "users_normal_email_key" ON "users" USING btree ("normal_email",(case when shares_email then id else 0 end)) WHERE normal_email is not null;--> statement-breakpoint
-- The users whose normal form is to be computed, which are few: an email in ASCII is its own normal form.
create index users_lack_normal_email on users (id) where normal_email is null and octet_length(email) > char_length(email);--> statement-breakpoint
-- A process of an earlier version changes an email without its normal form, which then would be that of the old email.
create function forget_normal_email() returns trigger language plpgsql as $$
begin
  if new.email <> old.email and new.normal_email is not distinct from old.normal_email then
    new.normal_email := null;
    new.shares_email := false;
  end if;
  return new;
end $$;--> statement-breakpoint
do $migration$ begin
  execute format('alter function forget_normal_email() set search_path = pg_catalog, %I, pg_temp', current_schema());
end $migration$;--> statement-breakpoint
create trigger users_forget_normal_email before update of email on users for each row execute function forget_normal_email();--> statement-breakpoint
insert into maintenance_jobs (name, next_at) values ('emails', now());
