-- The whole schema, by domain. db/schema/<domain>.ts says the same to the query builder, and tests/integration/db/schema.test.ts
-- compares the two; partitions, storage parameters and the first rows are here alone.
-- States are text with a CHECK that ties them to their columns; each state's comment says who moves it on.
-- Instants have milliseconds, like everything the API shows. ULIDs are ordered as bytes: collate "C".

------------------------------------------------------------------------------------------------ companies

create table plans (
  id integer generated always as identity primary key,
  name text not null unique,
  features text[] not null
);

create table companies (
  id integer generated always as identity primary key,
  type text not null check (type in ('platform', 'partner', 'account')),
  name text not null,
  partner_id integer references companies (id),
  plan_id integer references plans (id),
  is_active boolean not null default true,
  primary_color text not null,
  logo_url text,
  white_label_enabled boolean not null default false,
  brand_name text,
  white_label_domain text unique,
  created_at timestamptz(3) not null,
  -- Only an account belongs to a partner, and only an account has a plan (contract 4.5).
  constraint companies_account_partner check ((type = 'account') = (partner_id is not null)),
  constraint companies_account_plan check ((type = 'account') = (plan_id is not null))
);
create index companies_partner on companies (partner_id, id) where partner_id is not null;
create unique index companies_one_platform on companies (type) where type = 'platform';
-- The administration lists partners and accounts, newest first.
create index companies_type on companies (type, id);

create table stores (
  id integer generated always as identity primary key,
  account_id integer not null references companies (id),
  partner_id integer not null references companies (id),
  name text not null
);
create index stores_account on stores (account_id, id);

------------------------------------------------------------------------------------------------ users

create table users (
  id integer generated always as identity primary key,
  company_id integer not null references companies (id),
  email text not null unique check (email = lower(btrim(email))),
  name text not null,
  role text not null check (role in
    ('super_admin', 'partner_owner', 'partner_admin', 'account_owner', 'account_user', 'location_user')),
  -- Null for users who sign in only through an identity provider.
  password_hash text,
  is_active boolean not null default true,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index users_company on users (company_id, id);

-- The stores of a location user.
create table user_stores (
  user_id integer not null references users (id),
  store_id integer not null references stores (id),
  primary key (user_id, store_id)
);

------------------------------------------------------------------------------------------------ keys

-- next: published, does not sign yet. current: signs. retired: published while a live token carries its kid.
-- `bun run keys rotate` moves next to current and current to retired; the purge deletes a retired key that no token
-- needs.
create table signing_keys (
  kid text primary key,
  state text not null check (state in ('next', 'current', 'retired')),
  public_jwk jsonb not null,
  sealed_private_key text not null,
  created_at timestamptz(3) not null,
  activated_at timestamptz(3),
  retired_at timestamptz(3),
  constraint signing_keys_activated check ((state = 'next') = (activated_at is null)),
  constraint signing_keys_retirement check ((state = 'retired') = (retired_at is not null))
);
create unique index signing_keys_one_next on signing_keys (state) where state = 'next';
create unique index signing_keys_one_current on signing_keys (state) where state = 'current';
-- The purge looks for retired keys by age.
create index signing_keys_retired on signing_keys (retired_at) where state = 'retired';

------------------------------------------------------------------------------------------------ oauth

create table oauth_clients (
  client_id uuid primary key,
  -- Null: a client of the platform itself.
  company_id integer references companies (id),
  name text not null,
  secret_hash text,
  confidential boolean not null,
  first_party boolean not null,
  redirect_uris text[] not null,
  scopes text[] not null,
  grant_types text[] not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  constraint oauth_clients_secret check (confidential = (secret_hash is not null))
);
create index oauth_clients_company on oauth_clients (company_id, created_at);

------------------------------------------------------------------------------------------------ tokens

-- One row per sign-in: the family of the tokens that came from it.
create table authentication_events (
  id text collate "C" primary key,
  user_id integer not null references users (id),
  method text not null check (method in
    ('login', 'password_grant', 'authorization_code', 'sso', 'password_reset', 'impersonation')),
  client_id uuid references oauth_clients (client_id) on delete set null,
  ip text,
  user_agent text,
  at timestamptz(3) not null,
  logout_time timestamptz(3)
);
create index authentication_events_user on authentication_events (user_id, id desc);

-- A JWT counts only while its row lives: revoking is deleting (contract 4.3).
create table tokens (
  jti text collate "C" primary key,
  kind text not null check (kind in
    ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset')),
  user_id integer not null references users (id),
  client_id uuid references oauth_clients (client_id) on delete cascade,
  family_id text collate "C" references authentication_events (id),
  impersonator_id integer references users (id),
  scope text not null,
  kid text not null references signing_keys (kid),
  name text,
  -- The dashboard token is viewable again; sealed with its jti and user as context.
  sealed_token text,
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  -- A redeemed refresh token stays until it expires, so that a replay is recognised.
  redeemed_at timestamptz(3),
  constraint tokens_impersonation check ((kind = 'impersonation') = (impersonator_id is not null)),
  constraint tokens_named check ((kind = 'api_pat') = (name is not null)),
  constraint tokens_viewable check ((kind = 'dashboard_pat') = (sealed_token is not null)),
  constraint tokens_endless check ((kind = 'dashboard_pat') = (expires_at is null)),
  constraint tokens_redeemable check (kind = 'refresh' or redeemed_at is null)
);
create index tokens_user on tokens (user_id);
create index tokens_family on tokens (family_id);
create index tokens_impersonator on tokens (impersonator_id) where impersonator_id is not null;
create index tokens_client on tokens (client_id) where client_id is not null;
create index tokens_expiry on tokens (expires_at) where expires_at is not null;
create index tokens_kid on tokens (kid);
create unique index tokens_one_dashboard_pat on tokens (user_id) where kind = 'dashboard_pat';

-- The authorization code flow (RFC 6749, 4.1). A row is found by the hash of a secret that a browser or a client holds.
-- consent: the user has signed in on the service's page and is asked; the secret is in that page. A refusal deletes the
-- row; an agreement inserts a second row, which is issued and has a secret of its own.
-- issued: the secret is the code. The token endpoint moves it to redeemed, once.
-- redeemed: kept, so that a replay is recognised and ends the sign-in that the code began.
-- The purge deletes rows that are over.
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
  constraint authorization_codes_redemption check ((state = 'redeemed') = (redeemed_at is not null)),
  constraint authorization_codes_family check ((state = 'redeemed') = (family_id is not null))
);
-- A password reset deletes the user's rows; the deletion of a client deletes its own.
create index authorization_codes_user on authorization_codes (user_id);
create index authorization_codes_client on authorization_codes (client_id);
create index authorization_codes_expiry on authorization_codes (expires_at);

------------------------------------------------------------------------------------------------ sign-in

-- Per normalised email, known or not; kept as a digest, because people type passwords into email fields.
create table sign_in_locks (
  email_digest text primary key,
  failures integer not null check (failures >= 0),
  locks integer not null check (locks >= 0),
  locked_until timestamptz(3),
  last_failure_at timestamptz(3) not null
);
create index sign_in_locks_age on sign_in_locks (last_failure_at);

-- What was asked for an email in the last 24 h, known or not: when codes were issued, and when wrong ones were tried.
-- Whoever issues or tries a code holds this row until the commit, so that of any number each sees those before it.
create table email_code_limits (
  email_digest text primary key,
  issued_at timestamptz(3)[] not null,
  wrong_at timestamptz(3)[] not null,
  touched_at timestamptz(3) not null
);
create index email_code_limits_age on email_code_limits (touched_at);

-- The last code of an email and purpose. A code whose user_id is null was sent to nobody, unless it is for a signup.
-- user_id has no foreign key: its check would be work that an unknown email does not cost.
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
  constraint email_codes_signup check (type <> 'signup' or user_id is null)
);
create index email_codes_expiry on email_codes (expires_at);

------------------------------------------------------------------------------------------------ sso

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

-- A user as an identity provider knows it. Matched by issuer and subject alone; an email never decides again.
create table sso_identities (
  issuer text not null,
  subject text not null,
  user_id integer not null references users (id),
  -- The connection through which it was linked; when that is deleted, so is the link.
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  linked_at timestamptz(3) not null,
  primary key (issuer, subject),
  -- A second person whom the provider gives the address of the first does not get in as the first.
  unique (user_id, issuer)
);
create index sso_identities_connection on sso_identities (connection_id);

-- A browser on its way to the provider. Nonce and PKCE verifier are derived from the state and the browser's cookie, so
-- that nothing here helps anybody who reads it.
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

------------------------------------------------------------------------------------------------ audit

create table audit_log (
  id bigint generated always as identity primary key,
  at timestamptz(3) not null,
  action text not null,
  actor_id integer references users (id),
  impersonator_id integer references users (id),
  company_id integer references companies (id),
  ip text,
  user_agent text,
  request_id text,
  details jsonb not null
);
create index audit_log_action on audit_log (action, id desc);
create index audit_log_actor on audit_log (actor_id, id desc);
create index audit_log_company on audit_log (company_id, id desc);
create index audit_log_at on audit_log (at);

------------------------------------------------------------------------------------------------ providers

-- A review site and the credentials of its puller: what the routes call a provider.
create table review_sites (
  id integer generated always as identity primary key,
  slug text not null unique,
  name text not null,
  -- Sealed with the slug as context.
  sealed_secret text not null
);

create table store_review_sites (
  id integer generated always as identity primary key,
  store_id integer not null references stores (id),
  review_site_id integer not null references review_sites (id),
  account_id integer not null references companies (id),
  partner_id integer not null references companies (id),
  pull_connected boolean not null,
  pull_error_code text,
  post_connected boolean not null,
  post_error_code text,
  unique (store_id, review_site_id),
  constraint store_review_sites_pull_axis check (pull_connected = (pull_error_code is null)),
  constraint store_review_sites_post_axis check (post_connected = (post_error_code is null))
);
create index store_review_sites_account on store_review_sites (account_id, id);

-- Ids are unique per provider for ever (contract 9.1): a repeated one changes nothing.
create table provider_events (
  review_site_id integer not null references review_sites (id),
  id text collate "C" not null,
  received_at timestamptz(3) not null,
  primary key (review_site_id, id)
);

------------------------------------------------------------------------------------------------ reviews

create table reviews (
  id integer generated always as identity primary key,
  partner_id integer not null references companies (id),
  account_id integer not null references companies (id),
  store_id integer not null references stores (id),
  store_review_site_id integer not null references store_review_sites (id),
  external_review_id text not null,
  rate integer not null check (rate between 1 and 5),
  reviewer text,
  reviewer_email text,
  content text not null,
  -- The words that were last found, so that an update announces profanity once per change.
  profanity text[] not null default '{}',
  reviewed_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  removed_at timestamptz(3),
  response_body text,
  response_user_id integer references users (id),
  responded_at timestamptz(3),
  -- open, under_review: an open flag. accepted, rejected, withdrawn: closed; the account's flag-status action moves it.
  flag_status text check (flag_status in ('open', 'under_review', 'accepted', 'rejected', 'withdrawn')),
  flag_reason text,
  assigned_user_id integer references users (id),
  unique (store_review_site_id, external_review_id),
  constraint reviews_response check ((response_body is null) = (responded_at is null)),
  constraint reviews_flag check ((flag_status is null) = (flag_reason is null))
);
create index reviews_account on reviews (account_id, id desc);
create index reviews_store on reviews (store_id, id desc);

-- The audit trail. Together with its columns, actor, review or site, and metadata are the body of the webhook,
-- fixed here and never changed (contract 7.3); `json` keeps their text as written.
create table review_history (
  id bigint generated always as identity primary key,
  event_id text collate "C" not null unique,
  partner_id integer not null references companies (id),
  account_id integer not null references companies (id),
  store_id integer not null references stores (id),
  review_id integer references reviews (id),
  store_review_site_id integer not null references store_review_sites (id),
  event text not null,
  axis text check (axis in ('pull', 'post')),
  actor json not null,
  review json,
  site json,
  metadata json not null,
  occurred_at timestamptz(3) not null,
  recorded_at timestamptz(3) not null,
  -- A review event shows the review, a site-connection event the site and its axis (contract 8.2 and 8.3).
  constraint review_history_axis_of_site check ((site is null) = (axis is null)),
  constraint review_history_review_or_site check ((site is null) = (review is not null))
);
create index review_history_review on review_history (review_id, id) where review_id is not null;
create index review_history_partner on review_history (partner_id, recorded_at, id);
-- Since when an axis of a store's review site is as it is: its last change. Only changes are in it, so other history
-- pays nothing.
create index review_history_axis on review_history (store_review_site_id, axis, id)
  where event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                  'response_post_disconnected');

------------------------------------------------------------------------------------------------ webhooks

create table webhook_subscriptions (
  id text collate "C" primary key,
  partner_id integer not null references companies (id),
  -- Which of the 64 shards delivers it; chosen at creation.
  shard smallint not null check (shard between 0 and 63),
  label text not null,
  webhook_url text not null,
  delivery_kind text not null check (delivery_kind in ('immediate', 'batch')),
  batch_interval_hours integer,
  events text[],
  payload_mode text not null check (payload_mode in ('full', 'minimal')),
  suppress_native_notifications boolean not null,
  ordering text not null check (ordering in ('subscription', 'review')),
  -- active → disabled: the dispatcher, at the 20th permanent failure. disabled → active: enable.
  -- active, disabled → deleted: delete.
  state text not null check (state in ('active', 'disabled', 'deleted')),
  consecutive_failure_count integer not null default 0 check (consecutive_failure_count >= 0),
  -- Sealed with partner and subscription id as context, so that a swapped ciphertext does not open.
  sealed_secret text not null,
  secret_fingerprint text not null,
  sealed_previous_secret text,
  previous_secret_expires_at timestamptz(3),
  last_batch_dispatched_at timestamptz(3),
  next_batch_at timestamptz(3),
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  disabled_at timestamptz(3),
  disabled_reason text,
  deleted_at timestamptz(3),
  constraint webhook_subscriptions_batch_interval
    check ((delivery_kind = 'batch') = (batch_interval_hours is not null)),
  constraint webhook_subscriptions_batch_at check ((delivery_kind = 'batch') = (next_batch_at is not null)),
  constraint webhook_subscriptions_batch_settings check (delivery_kind = 'immediate'
    or (payload_mode = 'full' and not suppress_native_notifications and ordering = 'subscription')),
  constraint webhook_subscriptions_active check (state <> 'active' or disabled_at is null),
  constraint webhook_subscriptions_disabled check (state <> 'disabled' or disabled_at is not null),
  constraint webhook_subscriptions_disabled_reason check ((disabled_at is null) = (disabled_reason is null)),
  constraint webhook_subscriptions_deleted check ((state = 'deleted') = (deleted_at is not null)),
  constraint webhook_subscriptions_previous_secret
    check ((sealed_previous_secret is null) = (previous_secret_expires_at is null))
);
-- The slot (contract 6.2): this index decides, not a check before the insert.
create unique index webhook_subscriptions_slot on webhook_subscriptions (partner_id, delivery_kind)
  where state <> 'deleted';
create index webhook_subscriptions_partner on webhook_subscriptions (partner_id, id desc);
create index webhook_subscriptions_batch_due on webhook_subscriptions (shard, next_batch_at)
  where state = 'active' and next_batch_at is not null;
-- The administration lists those that were disabled, the last ones first; the active ones pay nothing for it.
create index webhook_subscriptions_disabled on webhook_subscriptions (disabled_at desc, id)
  where state = 'disabled';

------------------------------------------------------------------------------------------------ outbox

-- The counter behind `outbox.sequence`, apart from the subscription, so that the writers who queue on it do not
-- queue on anything else. Whoever appends holds this row until the commit, which makes the sequence gap-free and
-- in commit order; deleting the subscription deletes the row, after which nothing can be appended any more.
create table outbox_sequences (
  subscription_id text collate "C" primary key references webhook_subscriptions (id),
  last_sequence bigint not null default 0
) with (fillfactor = 50);

-- Unsettled entries only: what is still to be delivered, and `attempt`, the number that its next POST carries.
-- pending: due as soon as it is the head of its lane. waiting: for a retry at due_at. The dispatcher moves one to the
-- other, and deletes the row with the attempt that ends the entry; an entry that is skipped moves to settled_entries.
create table outbox (
  shard smallint not null,
  subscription_id text collate "C" not null,
  sequence bigint not null,
  event_id text collate "C" not null,
  event text not null,
  is_test boolean not null default false,
  payload_mode text not null check (payload_mode in ('full', 'minimal')),
  -- Null for webhook.test, whose body follows from this row alone.
  review_history_id bigint references review_history (id),
  review_id integer,
  -- Of an event of a batch: the dispatch and the review (contract 7.14).
  batch_job_id text collate "C",
  round smallint not null default 1 check (round >= 1),
  attempt smallint not null default 1 check (attempt between 1 and 4),
  state text not null default 'pending' check (state in ('pending', 'waiting')),
  due_at timestamptz(3),
  recorded_at timestamptz(3) not null,
  primary key (shard, subscription_id, sequence),
  constraint outbox_due check ((state = 'waiting') = (due_at is not null)),
  constraint outbox_history check (is_test = (review_history_id is null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index outbox_event on outbox (event_id);
create index outbox_test on outbox (shard, subscription_id, sequence) where is_test;
-- What blocks a lane. Entries that are delivered at once pay nothing for it.
create index outbox_waiting on outbox (subscription_id, sequence) where state = 'waiting';

-- Events that wait for the next dispatch of a batch subscription. The dispatch takes the rows that it can see and
-- leaves the rest, so a row that commits late falls into the next window by itself.
create table batch_entries (
  subscription_id text collate "C" not null references outbox_sequences (subscription_id) on delete cascade,
  review_history_id bigint not null references review_history (id),
  primary key (subscription_id, review_history_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);

-- Where outbox entries end that are never sent, because of `reason`: of a subscription that is deleted, of one that was
-- disabled for longer than the retention time, or that is enabled without what it held. An entry that was sent ends with
-- its last attempt.
create table settled_entries (
  subscription_id text collate "C" not null,
  sequence bigint not null,
  event_id text collate "C" not null,
  event text not null,
  is_test boolean not null,
  payload_mode text not null check (payload_mode in ('full', 'minimal')),
  review_history_id bigint,
  review_id integer,
  batch_job_id text collate "C",
  round smallint not null,
  reason text not null check (reason in ('deleted', 'expired', 'skipped')),
  recorded_at timestamptz(3) not null,
  settled_at timestamptz(3) not null,
  primary key (subscription_id, sequence, settled_at)
) partition by range (settled_at);
create index settled_entries_event on settled_entries (event_id);
-- How many expired: the health of a subscription.
create index settled_entries_expired on settled_entries (subscription_id, settled_at) where reason = 'expired';

------------------------------------------------------------------------------------------------ attempts

-- One row per POST, never updated. Ids are ULIDs of the start, so a day is a range of ids.
create table delivery_attempts (
  id text collate "C" not null,
  subscription_id text collate "C" not null,
  sequence bigint not null,
  event_id text collate "C" not null,
  event text not null,
  round smallint not null,
  attempt smallint not null,
  started_at timestamptz(3) not null,
  duration_ms integer not null,
  outcome text not null check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  status_code smallint,
  error_code text,
  request_headers json not null,
  request_body text not null,
  response_headers json,
  response_excerpt text,
  response_truncated boolean not null,
  next_attempt_at timestamptz(3),
  -- A kept connection died without a byte of an answer, and the same request went out once more on a fresh one within
  -- the attempt (contract 7.10): the receiver may have got it twice.
  resent boolean not null default false,
  -- Set on the attempt that ended its entry, delivered or failed, and on no other: what a redelivery needs of the entry
  -- that review_history does not know.
  payload_mode text check (payload_mode in ('full', 'minimal')),
  batch_job_id text collate "C",
  recorded_at timestamptz(3),
  primary key (subscription_id, id),
  constraint delivery_attempts_next check ((outcome = 'retry') = (next_attempt_at is not null)),
  constraint delivery_attempts_ended check ((recorded_at is null) = (payload_mode is null))
) partition by range (id);
create index delivery_attempts_event on delivery_attempts (event_id);
-- `deliveries?outcome=` for anything but delivered: an attempt that succeeds pays nothing for it. Of those that
-- succeed the newest are near the end of the primary key, because 20 failures in a row disable a subscription.
create index delivery_attempts_trouble on delivery_attempts (subscription_id, outcome, id)
  where outcome <> 'delivered';
-- `deliveries?event=`: an event that is rare, or never came, would cost a walk through all attempts. The price is one
-- more index entry per attempt, some 4 µs of Postgres in the dispatcher's commit (bench attempts).
create index delivery_attempts_of_event on delivery_attempts (subscription_id, event, id);

-- For rows outside every daily partition: a clock that jumped must not stop deliveries.
create table settled_entries_default partition of settled_entries default;
create table delivery_attempts_default partition of delivery_attempts default;

------------------------------------------------------------------------------------------------ stats

-- Attempts counted per five minutes, per hour and per day, by outcome and duration: the charts and the stats of a day
-- are made from few of these rows and the attempts since. A job of the API fills them after the fact, so that the
-- dispatcher pays nothing.
create table attempt_stats (
  subscription_id text collate "C" not null,
  -- How long the bucket is: an hour is summed from its five minutes, a day from its hours.
  step_s integer not null check (step_s in (300, 3600, 86400)),
  bucket_at timestamptz(3) not null,
  outcome text not null check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  -- Which bins of duration_ms occurred, and how often each; src/webhooks/stats.ts says what a bin spans.
  bins smallint[] not null,
  counts integer[] not null,
  primary key (subscription_id, step_s, bucket_at, outcome),
  constraint attempt_stats_bins check (cardinality(bins) = cardinality(counts))
);

-- The unsettled entries of a subscription at the end of a bucket; no row if there were none.
create table backlog_stats (
  subscription_id text collate "C" not null,
  bucket_at timestamptz(3) not null,
  entries integer not null,
  primary key (subscription_id, bucket_at)
);

-- How far that job has come: later attempts are counted where they stand. One row.
create table stats_progress (
  id smallint primary key default 1 check (id = 1),
  counted_until timestamptz(3) not null
);

------------------------------------------------------------------------------------------------ mails

-- Mails, written in the transaction of what they tell of and sent by the dispatcher that holds the shard of mail.
-- queued: to be sent at due_at, under `attempt`, the number of its next try. The mailer moves it on, to sent when an
-- SMTP server has taken it, to dead when that refused it for good, or its attempts or its time are used up.
create table mails (
  id text collate "C" primary key,
  kind text not null,
  -- Recipient, subject and bodies, sealed with `mail:<id>` as context. Erased with the last state: a sent code is
  -- nobody's business any more, and a dead one neither.
  sealed_message text,
  state text not null default 'queued' check (state in ('queued', 'sent', 'dead')),
  attempt smallint not null default 1 check (attempt >= 1),
  due_at timestamptz(3),
  -- From then on it is of no use to its reader, as with a code that has run out.
  expires_at timestamptz(3),
  created_at timestamptz(3) not null,
  settled_at timestamptz(3),
  -- Of the last failed attempt, in our own words: what a server answers may quote the recipient.
  error_code text,
  last_error text,
  constraint mails_message check ((state = 'queued') = (sealed_message is not null)),
  constraint mails_due check ((state = 'queued') = (due_at is not null)),
  constraint mails_settled check ((state = 'queued') = (settled_at is null)),
  constraint mails_dead check (state <> 'dead' or error_code is not null),
  constraint mails_error check ((error_code is null) = (last_error is null))
) with (fillfactor = 80);
create index mails_due on mails (due_at, id) where state = 'queued';
create index mails_settled on mails (settled_at) where state <> 'queued';

------------------------------------------------------------------------------------------------ dispatchers

-- A row is a lease: it lives while its process renews `renewed_at`, on the clock of this database. Whoever takes
-- over deletes the row of the dead, and every write of a dispatcher first locks its own row: a process that was
-- declared dead can write nothing more.
create table dispatchers (
  id text collate "C" primary key,
  started_at timestamptz(3) not null,
  renewed_at timestamptz(3) not null
);

create table shards (
  id smallint primary key check (id between 0 and 63),
  dispatcher_id text collate "C" references dispatchers (id) on delete set null,
  -- Counts the owners that this shard has had.
  epoch bigint not null default 0
);
create index shards_dispatcher on shards (dispatcher_id);
insert into shards (id) select generate_series(0, 63);
