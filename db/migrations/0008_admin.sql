-- What the administration lists.

-- Partners and accounts, newest first.
create index companies_type on companies (type, id);
-- Those that were disabled, the last ones first; the active ones pay nothing for it.
create index webhook_subscriptions_disabled on webhook_subscriptions (disabled_at desc, id)
  where state = 'disabled';
