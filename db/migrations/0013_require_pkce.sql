ALTER TABLE "oauth_clients" ADD COLUMN "require_pkce" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- A public client has always needed PKCE.
UPDATE "oauth_clients" SET "require_pkce" = true WHERE NOT "confidential";
