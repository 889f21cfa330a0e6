-- A database that had attempts when 0021 came has the former index by event, and the one by its beginning for later days
-- only. Delivering waits while it is made of all days.
do $$ begin
  if to_regclass('delivery_attempts_event') is not null then
    drop index delivery_attempts_event_prefix;
    create index delivery_attempts_event_prefix on delivery_attempts (left(event_id, 15));
    drop index delivery_attempts_event;
  end if;
end $$;
