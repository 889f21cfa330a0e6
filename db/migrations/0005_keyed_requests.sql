CREATE TABLE "keyed_requests" (
	"key" text PRIMARY KEY NOT NULL,
	"digest" text NOT NULL,
	"sealed_response" text,
	"created_at" timestamp (3) with time zone NOT NULL
);
--> statement-breakpoint
CREATE INDEX "keyed_requests_created_at" ON "keyed_requests" USING btree ("created_at");