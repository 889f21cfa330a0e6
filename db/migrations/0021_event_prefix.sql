-- The index of attempts by event knows the time and 25 random bits of an event's id, and is two thirds as large. Where there
-- are attempts, it is begun for the days to come; upkeep makes that of each day before, and when there is one of every
-- day, ends the former.
do $$ begin
  if exists (select from delivery_attempts) then
    create index delivery_attempts_event_prefix on only delivery_attempts (left(event_id, 15));
  else
    create index delivery_attempts_event_prefix on delivery_attempts (left(event_id, 15));
    drop index delivery_attempts_event;
  end if;
end $$;
