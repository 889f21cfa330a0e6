-- The authorization code flow (RFC 6749, 4.1). A row is what the secret that it is the hash of is good for:
-- consent: the user has signed in on the service's page and is asked; the secret is in that page. `deny` deletes the
-- row, and a yes makes a code beside it.
-- issued: the secret is the code; its client redeems it once.
-- redeemed: kept, so that a replay is recognised and ends the sign-in that the code began. The purge removes the row.
create table authorization_codes (
  secret_hash text collate "C" primary key,
  state text not null check (state in ('consent', 'issued', 'redeemed')),
  client_id uuid not null references oauth_clients (client_id) on delete cascade,
  user_id integer not null references users (id),
  redirect_uri text not null,
  -- Of PKCE with S256; null only where a confidential client did without.
  code_challenge text,
  scope text not null,
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  redeemed_at timestamptz(3),
  family_id text collate "C" references authentication_events (id),
  check ((state = 'redeemed') = (redeemed_at is not null)),
  check ((state = 'redeemed') = (family_id is not null))
);
-- A password reset ends what is pending; the deletion of a client what is its own.
create index authorization_codes_user on authorization_codes (user_id);
create index authorization_codes_client on authorization_codes (client_id);
create index authorization_codes_expiry on authorization_codes (expires_at);
