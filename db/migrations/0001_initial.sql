-- The domain of spec/interface.md. States are text with a CHECK that ties them to their columns;
-- each state's comment says who moves it on. Instants have milliseconds, like everything the API shows.
-- ULIDs are ordered as bytes: collate "C".

------------------------------------------------------------------------------------------------ tenants

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
  -- Only an account belongs to a partner, and only an account has a plan (decisions.md 2, login).
  check ((type = 'account') = (partner_id is not null)),
  check ((type = 'account') = (plan_id is not null))
);
create index companies_partner on companies (partner_id, id) where partner_id is not null;
create unique index companies_one_platform on companies (type) where type = 'platform';

create table stores (
  id integer generated always as identity primary key,
  account_id integer not null references companies (id),
  partner_id integer not null references companies (id),
  name text not null
);
create index stores_account on stores (account_id, id);

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

create table user_stores (
  user_id integer not null references users (id),
  store_id integer not null references stores (id),
  primary key (user_id, store_id)
);

------------------------------------------------------------------------------------------------ sign-in

-- next: published, does not sign yet. current: signs. retired: published while a live token carries its kid.
-- `bun run keys rotate` moves them on; the purge drops a retired key that no token needs.
create table signing_keys (
  kid text primary key,
  state text not null check (state in ('next', 'current', 'retired')),
  public_jwk jsonb not null,
  sealed_private_key text not null,
  created_at timestamptz(3) not null,
  activated_at timestamptz(3),
  retired_at timestamptz(3),
  check ((state = 'next') = (activated_at is null)),
  check ((state = 'retired') = (retired_at is not null))
);
create unique index signing_keys_one_next on signing_keys (state) where state = 'next';
create unique index signing_keys_one_current on signing_keys (state) where state = 'current';

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
  check (confidential = (secret_hash is not null))
);
create index oauth_clients_company on oauth_clients (company_id, created_at);

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

-- A JWT counts only while its row lives: revoking is deleting (decisions.md 2, revocation).
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
  check ((kind = 'impersonation') = (impersonator_id is not null)),
  check ((kind = 'api_pat') = (name is not null)),
  check ((kind = 'dashboard_pat') = (sealed_token is not null)),
  check ((kind = 'dashboard_pat') = (expires_at is null)),
  check (kind = 'refresh' or redeemed_at is null)
);
create index tokens_user on tokens (user_id);
create index tokens_family on tokens (family_id);
create index tokens_impersonator on tokens (impersonator_id) where impersonator_id is not null;
create index tokens_client on tokens (client_id) where client_id is not null;
create index tokens_expiry on tokens (expires_at) where expires_at is not null;
create index tokens_kid on tokens (kid);
create unique index tokens_one_dashboard_pat on tokens (user_id) where kind = 'dashboard_pat';

-- Per normalised email, known or not; kept as a digest, because people type passwords into email fields.
create table sign_in_locks (
  email_digest text primary key,
  failures integer not null check (failures >= 0),
  locks integer not null check (locks >= 0),
  locked_until timestamptz(3),
  last_failure_at timestamptz(3) not null
);
create index sign_in_locks_age on sign_in_locks (last_failure_at);

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

------------------------------------------------------------------------------------------------ reviews

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
  check (pull_connected = (pull_error_code is null)),
  check (post_connected = (post_error_code is null))
);
create index store_review_sites_account on store_review_sites (account_id, id);

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
  check ((response_body is null) = (responded_at is null)),
  check ((flag_status is null) = (flag_reason is null))
);
create index reviews_account on reviews (account_id, id desc);
create index reviews_store on reviews (store_id, id desc);

-- Ids are unique per provider for ever (decisions.md 6): a repeated one changes nothing.
create table provider_events (
  review_site_id integer not null references review_sites (id),
  id text collate "C" not null,
  received_at timestamptz(3) not null,
  primary key (review_site_id, id)
);

-- The audit trail. Together with its columns, actor, review or site, and metadata are the body of the webhook,
-- fixed here and never changed (decisions.md 4, identity); `json` keeps their text as written.
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
  -- A review event shows the review, a site-connection event the site and its axis (interface.md 6.2, 6.3).
  check ((site is null) = (axis is null)),
  check ((site is null) = (review is not null))
);
create index review_history_review on review_history (review_id, id) where review_id is not null;
create index review_history_partner on review_history (partner_id, recorded_at, id);

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
  check ((delivery_kind = 'batch') = (batch_interval_hours is not null)),
  check ((delivery_kind = 'batch') = (next_batch_at is not null)),
  check (delivery_kind = 'immediate'
    or (payload_mode = 'full' and not suppress_native_notifications and ordering = 'subscription')),
  check (state <> 'active' or disabled_at is null),
  check (state <> 'disabled' or disabled_at is not null),
  check ((disabled_at is null) = (disabled_reason is null)),
  check ((state = 'deleted') = (deleted_at is not null)),
  check ((sealed_previous_secret is null) = (previous_secret_expires_at is null))
);
-- The slot (interface.md 3.1): this index decides, not a check before the insert.
create unique index webhook_subscriptions_slot on webhook_subscriptions (partner_id, delivery_kind)
  where state <> 'deleted';
create index webhook_subscriptions_partner on webhook_subscriptions (partner_id, id desc);
create index webhook_subscriptions_batch_due on webhook_subscriptions (shard, next_batch_at)
  where state = 'active' and next_batch_at is not null;

-- The counter behind `outbox.sequence`, apart from the subscription, so that the writers who queue on it do not
-- queue on anything else. Whoever appends holds this row until the commit, which makes the sequence gap-free and
-- in commit order; deleting the subscription deletes the row, after which nothing can be appended any more.
create table outbox_sequences (
  subscription_id text collate "C" primary key references webhook_subscriptions (id),
  last_sequence bigint not null default 0
) with (fillfactor = 50);

-- Unsettled entries only: what is still to be delivered, and `attempt`, the number that its next POST carries.
-- pending: due as soon as it is the head of its lane. waiting: for a retry at due_at. The dispatcher moves both on;
-- settling an entry moves its row to settled_entries.
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
  batch_job_id text collate "C",
  round smallint not null default 1 check (round >= 1),
  attempt smallint not null default 1 check (attempt between 1 and 4),
  state text not null default 'pending' check (state in ('pending', 'waiting')),
  due_at timestamptz(3),
  recorded_at timestamptz(3) not null,
  primary key (shard, subscription_id, sequence),
  check ((state = 'waiting') = (due_at is not null)),
  check (is_test = (review_history_id is null))
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index outbox_event on outbox (event_id);
create index outbox_test on outbox (shard, subscription_id, sequence) where is_test;

-- Events that wait for the next dispatch of a batch subscription. The dispatch takes the rows that it can see and
-- leaves the rest, so a row that commits late falls into the next window by itself.
create table batch_entries (
  subscription_id text collate "C" not null references outbox_sequences (subscription_id) on delete cascade,
  review_history_id bigint not null references review_history (id),
  primary key (subscription_id, review_history_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);

-- One job per qualifying review and dispatch (interface.md 6.4, rule 2).
create table batch_jobs (
  id text collate "C" primary key,
  subscription_id text collate "C" not null references webhook_subscriptions (id),
  review_id integer not null references reviews (id),
  window_from timestamptz(3) not null,
  window_to timestamptz(3) not null,
  events integer not null check (events > 0)
);
create index batch_jobs_subscription on batch_jobs (subscription_id, id desc);

-- Where outbox entries end. delivered: an attempt was answered 2xx. failed: its attempts are used up, or 410.
-- skipped: never to be sent, because of `reason`. A redelivered event has a row per round.
create table settled_entries (
  subscription_id text collate "C" not null,
  sequence bigint not null,
  event_id text collate "C" not null,
  event text not null,
  is_test boolean not null,
  payload_mode text not null,
  review_history_id bigint,
  review_id integer,
  batch_job_id text collate "C",
  round smallint not null,
  state text not null check (state in ('delivered', 'failed', 'skipped')),
  reason text check (reason in ('deleted', 'expired', 'skipped')),
  recorded_at timestamptz(3) not null,
  settled_at timestamptz(3) not null,
  primary key (subscription_id, sequence, settled_at),
  check ((state = 'skipped') = (reason is not null))
) partition by range (settled_at);
create index settled_entries_event on settled_entries (event_id);

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
  primary key (subscription_id, id),
  check ((outcome = 'retry') = (next_attempt_at is not null))
) partition by range (id);
create index delivery_attempts_event on delivery_attempts (event_id);

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

-- For rows outside every daily partition: a clock that jumped must not stop deliveries.
create table settled_entries_default partition of settled_entries default;
create table delivery_attempts_default partition of delivery_attempts default;
