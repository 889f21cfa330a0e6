CREATE TABLE "company_deletions" (
	"company_id" integer PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'waiting' NOT NULL,
	"reached" text,
	"requested_by" integer NOT NULL,
	"requested_at" timestamp (3) with time zone NOT NULL,
	"due_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "erasures" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"state" text DEFAULT 'queued' NOT NULL,
	"sealed_selector" text,
	"reached" text,
	"counts" jsonb DEFAULT '{}'::jsonb NOT NULL,
	"requested_by" integer,
	"requested_at" timestamp (3) with time zone NOT NULL,
	"finished_at" timestamp (3) with time zone
);
--> statement-breakpoint
ALTER TABLE "mails" ADD COLUMN "review_id" integer;--> statement-breakpoint
ALTER TABLE "review_history" ADD COLUMN "erased_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "reviews" ADD COLUMN "erased_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "company_deletions" ADD CONSTRAINT "company_deletions_company_id_companies_id_fk" FOREIGN KEY ("company_id") REFERENCES "public"."companies"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "company_deletions" ADD CONSTRAINT "company_deletions_requested_by_users_id_fk" FOREIGN KEY ("requested_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "erasures" ADD CONSTRAINT "erasures_requested_by_users_id_fk" FOREIGN KEY ("requested_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
alter table erasures
  add constraint erasures_kind_check check (kind in ('user', 'reviewer')),
  add constraint erasures_state_check check (state in ('queued', 'running', 'done')),
  add constraint erasures_ended check ((state = 'done') = (finished_at is not null)),
  -- What is left of an erasure names nobody.
  add constraint erasures_sealed check ((state = 'done') = (sealed_selector is null));--> statement-breakpoint
create index erasures_open on erasures (id) where state <> 'done';--> statement-breakpoint
alter table company_deletions add constraint company_deletions_state_check check (state in ('waiting', 'running'));--> statement-breakpoint
create index mails_review on mails (review_id) where review_id is not null;--> statement-breakpoint
-- An attempt whose request was erased keeps the digest of its body.
alter table delivery_attempts
  drop constraint delivery_attempts_request,
  add constraint delivery_attempts_request check (
    case when payload_format is null
         then request_headers is not null and request_body is not null or body_digest is not null
         else host is not null and signature is not null and body_digest is not null end) not valid;--> statement-breakpoint
-- The rows of an erased or deleted user are found by these keys, and so are the references that a deletion of a user checks.
create index audit_log_impersonator on audit_log (impersonator_id) where impersonator_id is not null;--> statement-breakpoint
create index reviews_response_user on reviews (response_user_id) where response_user_id is not null;--> statement-breakpoint
create index reviews_assigned_user on reviews (assigned_user_id) where assigned_user_id is not null;--> statement-breakpoint
-- A row of the history changes only if an erasure replaces what names a person (contract 7.3 and 10.8).
create function keep_history() returns trigger language plpgsql as $$
declare
  personal constant text[] := '{actor,review,metadata,erased_at}';
begin
  if new.erased_at is null or to_jsonb(new) - personal is distinct from to_jsonb(old) - personal then
    raise exception 'rows of % never change', tg_table_name using errcode = 'restrict_violation';
  end if;
  return new;
end $$;--> statement-breakpoint
drop trigger review_history_fixed on review_history;--> statement-breakpoint
create trigger review_history_fixed before update on review_history
  for each row execute function keep_history();--> statement-breakpoint
-- Reviews are removed only with their company, and so are the connections that have reported something (contract 10.8).
create function is_leaving(companies integer[]) returns boolean language sql stable as $$
  select exists (select from company_deletions where company_id = any(companies) and state = 'running')
$$;--> statement-breakpoint
create function keep_reviews() returns trigger language plpgsql as $$
begin
  if not is_leaving(array[old.account_id, old.partner_id]) then
    raise exception 'rows of % never change', tg_table_name using errcode = 'restrict_violation';
  end if;
  return old;
end $$;--> statement-breakpoint
drop trigger reviews_kept on reviews;--> statement-breakpoint
create trigger reviews_kept before delete on reviews for each row execute function keep_reviews();--> statement-breakpoint
drop function refuse_change();--> statement-breakpoint
create or replace function keep_reported_connection() returns trigger language plpgsql as $$
begin
  if not is_leaving(array[old.account_id, old.partner_id])
     and (exists (select from reviews where store_review_site_id = old.id)
          or exists (select from review_history
                      where store_review_site_id = old.id and axis in ('pull', 'post')
                        and event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                                      'response_post_disconnected'))) then
    raise exception 'connection % has reported events', old.id
      using errcode = 'foreign_key_violation', table = 'review_history';
  end if;
  return old;
end $$;--> statement-breakpoint
insert into maintenance_jobs (name, next_at) values ('erasures', now()), ('deletions', now());
