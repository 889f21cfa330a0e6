CREATE TABLE "keyed_requests" (
	"user_id" integer NOT NULL,
	"key" text NOT NULL,
	"digest" text NOT NULL,
	"sealed_response" text,
	"created_at" timestamp (3) with time zone NOT NULL,
	CONSTRAINT "keyed_requests_user_id_key_pk" PRIMARY KEY("user_id","key")
);
--> statement-breakpoint
CREATE INDEX "keyed_requests_created_at" ON "keyed_requests" USING btree ("created_at");