-- The body of a queued event is composed from its row of review_history when it is sent. A delete of that row is refused
-- while an entry or a waiting batch still needs it: each check is one probe of an index. Retention deletes only rows that
-- nothing needs, so it never meets this.
create function keep_queued_history() returns trigger language plpgsql as $$
begin
  if exists (select from outbox where event_id = old.event_id)
     or exists (select from webhook_subscriptions s cross join lateral (
                  select from batch_entries b
                   where b.subscription_id = s.id and b.review_history_id = old.id offset 0) b
                 where s.partner_id = old.partner_id) then
    raise exception 'event % is still queued for a webhook', old.event_id
      using errcode = 'restrict_violation', hint = 'Delete or skip what is queued first.';
  end if;
  return old;
end $$;
create trigger review_history_kept before delete on review_history
  for each row execute function keep_queued_history();
