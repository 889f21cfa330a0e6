-- When upkeep last went through the tables. One row, which whoever begins a pass moves on: so there is one pass an hour,
-- whatever the number of processes and restarts, and a step of this server's clock is seen as a gap between two passes.
create table upkeep_progress (
  id smallint primary key default 1 check (id = 1),
  passed_at timestamptz(3) not null
);
insert into upkeep_progress (passed_at) values ('1970-01-01T00:00:00Z');
