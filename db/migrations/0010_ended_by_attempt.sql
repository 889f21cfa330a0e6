-- The attempt that ended its entry, delivered or failed, says so itself: a row of settled_entries beside it cost half
-- as much again as the attempt. From here on only skipped entries get one; those that are there stay until retention
-- drops them. Set on such an attempt alone: what a redelivery needs of the entry, and review_history does not know.
alter table delivery_attempts
  add column payload_mode text,
  add column batch_job_id text collate "C",
  add column recorded_at timestamptz(3),
  add constraint delivery_attempts_ended check ((recorded_at is null) = (payload_mode is null)) not valid;
