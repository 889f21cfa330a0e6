ALTER TABLE "users" ADD COLUMN "scopes" text[];--> statement-breakpoint
-- An integration of a partner (contract 10.10) is a user with scopes, without a password and, while it is active, without
-- an address. The second check also keeps processes of an earlier version from giving it one of these or another role.
-- These may erase it as a person, which deactivates it and replaces the email.
alter table users
  drop constraint users_role_check,
  add constraint users_role_check check (role in
    ('super_admin', 'partner_owner', 'partner_admin', 'partner_integration', 'account_owner', 'account_user',
     'location_user', 'service')),
  add constraint users_integration check
    ((role = 'partner_integration') = (scopes is not null) and
     (scopes is null or password_hash is null and (email like 'integration:%' or not is_active)));
