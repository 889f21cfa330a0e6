-- A delete or a skip of a batch slot drops what waits in it, which can be millions of rows: a thousand in its own
-- transaction, the rest by upkeep in chunks. So the delete must not cascade any more. Nothing can be added for a deleted
-- subscription without the key: every writer locks the sequence row first.
alter table batch_entries drop constraint batch_entries_subscription_id_fkey;
-- A skip notes here up to which review_history id the waiting events are dropped, while they still stand in batch_entries.
alter table outbox_sequences add column batch_skipped_through bigint not null default 0;

create or replace function keep_queued_history() returns trigger language plpgsql as $$
begin
  if exists (select from outbox where event_id = old.event_id)
     or exists (select from webhook_subscriptions s
                 cross join lateral (
                  select from batch_entries b
                   where b.subscription_id = s.id and b.review_history_id = old.id offset 0) b
                 cross join lateral (
                  select from outbox_sequences q
                   where q.subscription_id = s.id and q.batch_skipped_through < old.id offset 0) q
                 where s.partner_id = old.partner_id) then
    raise exception 'event % is still queued for a webhook', old.event_id
      using errcode = 'restrict_violation', hint = 'Delete or skip what is queued first.';
  end if;
  return old;
end $$;
