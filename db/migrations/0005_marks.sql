-- What was decided about many entries in one short transaction, and is carried out in chunks after it.

-- Entries up to `through` are skipped, for `reason`, since `settled_at`: every answer shows them so, although they
-- still stand in the outbox. Upkeep moves them to settled_entries, and then deletes the mark.
create table outbox_marks (
  subscription_id text collate "C" primary key,
  shard smallint not null,
  through bigint not null,
  reason text not null check (reason in ('deleted', 'skipped')),
  settled_at timestamptz(3) not null
);

-- A batch that is being dispatched: the waiting events up to `through` become entries, chunk by chunk. The last chunk
-- moves the cursor to `opened_at` and deletes the row; a delete of the subscription and a skip delete it, too.
create table batch_windows (
  subscription_id text collate "C" primary key references outbox_sequences (subscription_id) on delete cascade,
  -- The jobs of the dispatch are named after it.
  id text collate "C" not null,
  opened_at timestamptz(3) not null,
  through bigint not null,
  -- How far it is. No event below this one is left, so that no chunk walks over what others have deleted.
  first_id bigint not null default 0,
  -- Whose events the last chunk ended with: those that are left of it come next.
  review_id integer
);
