ALTER TABLE "webhook_subscriptions" ADD COLUMN "disabled_note" text;--> statement-breakpoint
-- A partner reads its history in the order of ids, and its reviews in the order of their last changes (contract 9.6).
CREATE INDEX "review_history_tenant" ON "review_history" USING btree ("partner_id","id");--> statement-breakpoint
CREATE INDEX "reviews_partner" ON "reviews" USING btree ("partner_id","updated_at","id");
