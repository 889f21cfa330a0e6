do $migration$
declare
  own constant text := (select nspname from pg_class c join pg_namespace n on n.oid = relnamespace where c.oid = 'inbox'::regclass);
begin
  -- Gives an action its place (contract 9.8), as the function of 0019 but without a lock: a transaction of the platform
  -- waits for nobody. An action that is inserted after another was committed has the higher position, and whoever sees
  -- it sees the other, so that a reader which takes what it sees by position keeps this order.
  execute format($function$
create or replace function %1$I.place_in_inbox() returns trigger language plpgsql security definer
  set search_path = pg_catalog, %1$I, pg_temp as $$
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
  new.position := pg_catalog.nextval(%2$L);
  new.state := 'waiting';
  new.errors := null;
  new.inserted_at := pg_catalog.clock_timestamp();
  return new;
end $$$function$, own, format('%I.inbox_position', own));
end $migration$;
