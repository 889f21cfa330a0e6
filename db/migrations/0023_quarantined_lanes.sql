ALTER TABLE "dispatchers" ADD COLUMN "quarantined" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
insert into maintenance_jobs (name, next_at) values ('due_times', now());
