-- Where the next call of a recovery goes on.
create table recoveries (
  subscription_id text collate "C" primary key references outbox_sequences (subscription_id) on delete cascade,
  since timestamptz(3) not null,
  events text[] not null,
  through_at timestamptz(3) not null,
  through_id bigint not null,
  skipped_through bigint not null,
  batch_skipped_through bigint not null
);
