-- An attempt no longer keeps what it sent: its request is composed again from the history of the event, by the composer
-- that is named here, and shown where the digest proves it (contract 7.13). What was written before, and test events,
-- keep their bytes. Nothing is rewritten: the columns are added as null.
alter table delivery_attempts
  alter column request_headers drop not null,
  alter column request_body drop not null,
  -- Which frozen code composes body and headers again: src/outbox/composer.ts.
  add column composer smallint,
  -- What the Host header was.
  add column host text,
  -- The HMACs as bytes; the previous one in the grace period of a rotation alone.
  add column signature bytea,
  add column previous_signature bytea,
  -- The first 16 bytes of the SHA-256 of the exact body.
  add column body_digest bytea;
alter table delivery_attempts add constraint delivery_attempts_request check (
  case when composer is null then request_headers is not null and request_body is not null
       else host is not null and signature is not null and body_digest is not null end) not valid;

-- `deliveries?event=` on days that have ended: upkeep makes an index for each in bulk, which costs a commit nothing. What
-- is in no daily partition is next to nothing, so that index can be made here.
drop index delivery_attempts_of_event;
create index delivery_attempts_default_of_event on delivery_attempts_default (subscription_id, event, id);

-- What bodies are composed from again never changes.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % never change', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger review_history_fixed before update on review_history
  for each row execute function refuse_change();
