ALTER TABLE "users" ADD COLUMN "scopes" text[];--> statement-breakpoint
-- An integration of a partner (contract 10.10) is a user with scopes and without a password. The second check also keeps
-- processes of an earlier version from giving it another role or a password.
alter table users
  drop constraint users_role_check,
  add constraint users_role_check check (role in
    ('super_admin', 'partner_owner', 'partner_admin', 'partner_integration', 'account_owner', 'account_user',
     'location_user', 'service')),
  add constraint users_integration check
    ((role = 'partner_integration') = (scopes is not null) and (scopes is null or password_hash is null));
