do $migration$
declare
  own constant text := (select nspname from pg_class c join pg_namespace n on n.oid = relnamespace where c.oid = 'inbox'::regclass);
  one regprocedure;
begin
  -- Gives an action its place (contract 9.8). The lock of its partner is held until the commit, so that the places of a
  -- partner's actions follow the order of commits.
  --
  -- The function runs as its owner, because a service may only insert. So nothing of the session decides what it runs or
  -- reads: each name has its schema, and `pg_temp` is searched last. It works for the inbox alone, because another table,
  -- whose trigger it could be, may have columns of types with casts, which it would run.
  execute format($function$
create or replace function %1$I.place_in_inbox() returns trigger language plpgsql security definer as $$
declare
  review text;
  site text;
begin
  if (tg_table_schema operator(pg_catalog.<>) %1$L) or (tg_table_name operator(pg_catalog.<>) 'inbox') then
    raise exception 'place_in_inbox is a trigger of the inbox' using errcode = 'insufficient_privilege';
  end if;
  review := pg_catalog.left(new.action operator(pg_catalog.->>) 'review_id', 11);
  site := pg_catalog.left(new.action operator(pg_catalog.->>) 'store_review_site_id', 11);
  new.partner_id := coalesce(
    case when review operator(pg_catalog.~) '^[1-9][0-9]{0,9}$' then
      (select r.partner_id from %1$I.reviews r where r.id operator(pg_catalog.=) review::pg_catalog.int8) end,
    case when site operator(pg_catalog.~) '^[1-9][0-9]{0,9}$' then
      (select s.partner_id from %1$I.store_review_sites s where s.id operator(pg_catalog.=) site::pg_catalog.int8) end, 0);
  perform pg_catalog.pg_advisory_xact_lock(41, new.partner_id);
  new.position := pg_catalog.nextval(%2$L);
  new.state := 'waiting';
  new.errors := null;
  new.inserted_at := pg_catalog.clock_timestamp();
  return new;
end $$$function$, own, format('%I.inbox_position', own));

  -- The bytes of the longest text in a value, also of a key, in UTF-8 whatever the encoding of the database is. The texts are
  -- found in the printed value, because the time of `jsonb_path_query` grows with the square of the number of values.
  execute format($function$
create function %1$I.longest_text_bytes(value jsonb) returns integer language sql immutable strict parallel safe as $$
  select coalesce(max(octet_length(convert_to(found[1]::jsonb #>> '{}', 'UTF8'))), 0)
    from regexp_matches(value::text, E'"(?:[^"\\\\]|\\\\.)*"', 'g') texts(found)
$$$function$, own);

  -- No function depends on the search path of a session. Functions that run as their caller do so for consistency: the
  -- caller may be the owner of the tables, in a session whose search path has other schemas.
  foreach one in array array['place_in_inbox()', 'longest_text_bytes(jsonb)', 'is_leaving(integer[])', 'keep_history()',
    'keep_queued_history()', 'keep_reported_connection()', 'keep_reviews()', 'note_change()']::regprocedure[]
  loop
    execute format('alter function %s set search_path = pg_catalog, %I, pg_temp', one, own);
  end loop;
end $migration$;--> statement-breakpoint
-- PostgreSQL fires a trigger without this privilege, but with it a user could make the function the trigger of a table of
-- its own. The check below is evaluated as the user who inserts.
revoke execute on function place_in_inbox() from public;--> statement-breakpoint
grant execute on function longest_text_bytes(jsonb) to public;--> statement-breakpoint
-- The limits of src/services/model.ts. Rows of before the limits may exceed them, and are then rejected. `case` decides the
-- order: the state of a rejected row changes without a look at its action.
alter table inbox
  add constraint inbox_action_over_1_mib check (
    case when state = 'waiting' then octet_length(convert_to(action::text, 'UTF8')) <= 1048576 else true end) not valid,
  add constraint inbox_text_over_256_kib check (
    case when state = 'waiting' and octet_length(convert_to(action::text, 'UTF8')) > 262144
         then longest_text_bytes(action) <= 262144 else true end) not valid;
