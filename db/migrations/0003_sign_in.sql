-- What sign-in needs beside passwords and tokens: identity providers, and codes sent by mail.

-- An outside identity provider of one company. Its domains say which email addresses it signs in.
create table sso_connections (
  id text collate "C" primary key,
  company_id integer not null references companies (id),
  issuer text not null,
  client_id text not null,
  -- Sealed with company and connection id as context, so that a swapped ciphertext does not open.
  sealed_client_secret text not null,
  -- Whether the company's users in these domains may sign in with a password as well.
  password_login boolean not null,
  is_active boolean not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index sso_connections_company on sso_connections (company_id, id);

-- A domain belongs to one connection: /auth/discover has one answer.
create table sso_domains (
  -- As DNS writes it: ASCII, lower case, without a dot at the end.
  domain text primary key check (domain = lower(domain)),
  connection_id text collate "C" not null references sso_connections (id) on delete cascade
);
create index sso_domains_connection on sso_domains (connection_id);

-- What was asked for an email in the last 24 h, known or not: when codes were issued, and when wrong ones were tried.
-- Whoever issues or tries a code holds this row until the commit, so that of any number each sees those before it.
create table email_code_limits (
  email_digest text primary key,
  issued_at timestamptz(3)[] not null,
  wrong_at timestamptz(3)[] not null,
  touched_at timestamptz(3) not null
);
create index email_code_limits_age on email_code_limits (touched_at);

-- The last code of an email and purpose. Nobody is told a code whose user_id is null, but for a signup. No foreign key
-- on it: its check would be work that an unknown email does not cost.
create table email_codes (
  email_digest text not null,
  type text not null check (type in ('forgot_password', 'change_password', 'signup')),
  user_id integer,
  code_mac text not null,
  tries smallint not null check (tries >= 0),
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3),
  primary key (email_digest, type),
  check (type <> 'signup' or user_id is null)
);
create index email_codes_expiry on email_codes (expires_at);

-- The purge looks for retired keys by age.
create index signing_keys_retired on signing_keys (retired_at) where state = 'retired';
