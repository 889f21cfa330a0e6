ALTER TABLE "alert_settings" ADD COLUMN "confirmed_recipients" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
-- Recipients that were set before confirmations existed keep their mails.
update alert_settings set confirmed_recipients = recipients where recipients is not null;
