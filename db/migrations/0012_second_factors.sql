CREATE TABLE "recovery_codes" (
	"user_id" integer NOT NULL,
	"code_hash" text NOT NULL,
	CONSTRAINT "recovery_codes_user_id_code_hash_pk" PRIMARY KEY("user_id","code_hash")
);
--> statement-breakpoint
CREATE TABLE "second_factor_challenges" (
	"jti" text collate "C" PRIMARY KEY NOT NULL,
	"method" text,
	"tries" smallint DEFAULT 0 NOT NULL,
	"passkey_challenge" text,
	"passkey_at" timestamp (3) with time zone,
	"sealed_secret" text,
	"secret_at" timestamp (3) with time zone
);
--> statement-breakpoint
CREATE TABLE "second_factors" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"user_id" integer NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"sealed_secret" text,
	"last_step" integer,
	"credential_id" text,
	"public_key" "bytea",
	"sign_count" bigint,
	"transports" text[] DEFAULT '{}' NOT NULL,
	"created_at" timestamp (3) with time zone NOT NULL,
	"last_used_at" timestamp (3) with time zone,
	CONSTRAINT "second_factors_credential_id_key" UNIQUE("credential_id")
);
--> statement-breakpoint
ALTER TABLE "companies" ADD COLUMN "require_second_factor" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "authentication_events" ADD COLUMN "factor_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "recovery_codes" ADD CONSTRAINT "recovery_codes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "second_factor_challenges" ADD CONSTRAINT "second_factor_challenges_jti_tokens_jti_fk" FOREIGN KEY ("jti") REFERENCES "public"."tokens"("jti") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "second_factors" ADD CONSTRAINT "second_factors_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "second_factors_one_app" ON "second_factors" USING btree ("user_id") WHERE kind = 'totp';--> statement-breakpoint
alter table tokens
  drop constraint tokens_kind_check,
  add constraint tokens_kind_check check (kind in
    ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset', 'portal', 'service',
     'challenge'));--> statement-breakpoint
alter table second_factors
  add constraint second_factors_kind_check check (kind in ('totp', 'passkey')),
  add constraint second_factors_totp check ((kind = 'totp') = (sealed_secret is not null)),
  add constraint second_factors_step check (kind = 'totp' or last_step is null),
  add constraint second_factors_passkey check
    (num_nonnulls(credential_id, public_key, sign_count) = case kind when 'passkey' then 3 else 0 end);--> statement-breakpoint
create index second_factors_user on second_factors (user_id, id);--> statement-breakpoint
alter table second_factor_challenges
  add constraint second_factor_challenges_method_check check (method in ('login', 'password_reset', 'authorization_code')),
  add constraint second_factor_challenges_tries_check check (tries between 0 and 5),
  add constraint second_factor_challenges_passkey check ((passkey_challenge is null) = (passkey_at is null)),
  add constraint second_factor_challenges_secret check ((sealed_secret is null) = (secret_at is null));
