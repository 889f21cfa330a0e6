-- Test events by the time that they are due: a load takes the 16 that are due first, whatever waits behind them, and the
-- sweep looks at the first alone. The index is partial, so building it reads the outbox once and writes next to nothing;
-- nobody can append meanwhile.
create index outbox_test_due on outbox (shard, subscription_id, due_at nulls first, sequence) where is_test;
drop index outbox_test;

-- These tables keep the pages that they once had (db/pages.ts says why). Giving them back would also lock out everybody.
alter table outbox set (vacuum_truncate = false);
alter table batch_entries set (vacuum_truncate = false);
alter table outbox_sequences set (vacuum_truncate = false);
alter table webhook_subscriptions set (vacuum_truncate = false);
alter table review_history set (vacuum_truncate = false);
