-- What the partner's pages and routes read about deliveries.

-- Attempts counted per five minutes, per hour and per day, by outcome and duration: the charts and the figures of a day
-- are made from few of these rows and the attempts since. A job of the API fills them after the fact, so that the
-- dispatcher pays nothing.
create table attempt_figures (
  subscription_id text collate "C" not null,
  -- How long the bucket is: an hour is summed from its five minutes, a day from its hours.
  step_s integer not null check (step_s in (300, 3600, 86400)),
  bucket_at timestamptz(3) not null,
  outcome text not null check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  -- Which bins of duration_ms occurred, and how often each: src/webhooks/figures.ts says what a bin spans.
  bins smallint[] not null,
  counts integer[] not null,
  primary key (subscription_id, step_s, bucket_at, outcome),
  check (cardinality(bins) = cardinality(counts))
);

-- The unsettled entries of a subscription at the end of a bucket; no row if there were none.
create table backlog_figures (
  subscription_id text collate "C" not null,
  bucket_at timestamptz(3) not null,
  entries integer not null,
  primary key (subscription_id, bucket_at)
);

-- How far that job has come: later attempts are counted where they stand. One row.
create table figures_progress (
  id smallint primary key default 1 check (id = 1),
  counted_until timestamptz(3) not null
);

-- `deliveries?outcome=` for anything but delivered: an attempt that succeeds pays nothing for it. Of those that
-- succeed the newest are near the end of the primary key, because 20 failures in a row disable a subscription.
create index delivery_attempts_trouble on delivery_attempts (subscription_id, outcome, id)
  where outcome <> 'delivered';
-- What blocks a lane. Entries that are delivered at once pay nothing for it.
create index outbox_waiting on outbox (subscription_id, sequence) where state = 'waiting';
-- Held for longer than the retention time: health tells.
create index settled_entries_expired on settled_entries (subscription_id, settled_at) where reason = 'expired';
-- `deliveries?event=`: an event that is rare, or never came, would cost a walk through all attempts. The price is one
-- more index entry per attempt, some 4 µs of Postgres in the dispatcher's commit (bench attempts, README).
create index delivery_attempts_of_event on delivery_attempts (subscription_id, event, id);
