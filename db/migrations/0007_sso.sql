-- Single sign-on: who is who at the identity providers, and what is under way (decisions.md 2, SSO legs).

-- A user as an identity provider knows it. Matched by issuer and subject alone; an email never decides again.
create table sso_identities (
  issuer text not null,
  subject text not null,
  user_id integer not null references users (id),
  -- Through which it was linked; with the connection the link goes.
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  linked_at timestamptz(3) not null,
  primary key (issuer, subject),
  -- A second person whom the provider gives the address of the first does not get in as the first.
  unique (user_id, issuer)
);
create index sso_identities_connection on sso_identities (connection_id);

-- A browser on its way to the provider. Nonce and PKCE verifier come from the state and the browser's cookie, so that
-- nothing here helps anybody who reads it.
create table sso_states (
  state_hash text primary key,
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  browser_hash text not null,
  return_to text not null,
  code_challenge text,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  -- Set by the callback, once.
  consumed_at timestamptz(3)
);
create index sso_states_expiry on sso_states (expires_at);
create index sso_states_connection on sso_states (connection_id);

-- A sign-in that the provider confirmed, waiting for its exchange.
create table sso_codes (
  code_hash text primary key,
  user_id integer not null references users (id),
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  code_challenge text,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  -- Set by the first exchange, right or wrong, and by a password reset.
  consumed_at timestamptz(3)
);
create index sso_codes_expiry on sso_codes (expires_at);
create index sso_codes_user on sso_codes (user_id);
create index sso_codes_connection on sso_codes (connection_id);
