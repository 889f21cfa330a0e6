-- The APIs and dispatchers that run, with the ids of the master keys that they have: `rotate-master` refuses while one of
-- them lacks the new key, because it would open nothing afterwards.
create table processes (
  id text collate "C" primary key,
  role text not null constraint processes_role_check check (role in ('api', 'dispatcher')),
  host text not null,
  pid integer not null,
  master_keys text[] not null,
  seen_at timestamptz(3) not null
);
