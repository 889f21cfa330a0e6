-- The jobs of the maintenance loop. An update of a row touches no index, so that it stays within its page.
create table maintenance_jobs (
  name text collate "C" primary key,
  next_at timestamptz(3) not null,
  began_at timestamptz(3),
  succeeded_at timestamptz(3),
  duration_ms integer,
  rows bigint not null default 0,
  reached text,
  failures integer not null default 0,
  last_error text,
  holder text,
  leased_until timestamptz(3),
  constraint maintenance_jobs_held check ((holder is null) = (leased_until is null))
);

-- The hourly jobs go on where the last pass of upkeep was, so that the first run after the upgrade may remove data if that
-- pass was less than two hours ago. In a new database all are due.
insert into maintenance_jobs (name, next_at, began_at, succeeded_at)
select name, passed_at + interval '1 hour', nullif(passed_at, '1970-01-01T00:00:00Z'), nullif(passed_at, '1970-01-01T00:00:00Z')
  from upkeep_progress cross join unnest(array[
         'partitions', 'day_indexes', 'history', 'attempts', 'strays', 'held_entries',
         'skipped_entries', 'batch_entries', 'mails', 'incidents', 'audit_log', 'sign_ins']) as jobs(name);
insert into maintenance_jobs (name, next_at)
values ('alerts', now()), ('stats', now()), ('credentials', now()), ('lost_sessions', now());
drop table upkeep_progress;
