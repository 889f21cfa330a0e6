-- The schema of a database before the baseline, migrated up to 0022, which db/upgrades/baseline.sql upgrades.
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
  constraint companies_account_partner check ((type = 'account') = (partner_id is not null)),
  constraint companies_account_plan check ((type = 'account') = (plan_id is not null))
);
create index companies_partner on companies (partner_id, id) where partner_id is not null;
create unique index companies_one_platform on companies (type) where type = 'platform';
create index companies_type on companies (type, id);
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
create index signing_keys_retired on signing_keys (retired_at) where state = 'retired';
create table oauth_clients (
  client_id uuid primary key,
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
  sealed_token text,
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
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
create table authorization_codes (
  secret_hash text collate "C" primary key,
  state text not null check (state in ('consent', 'issued', 'redeemed')),
  client_id uuid not null references oauth_clients (client_id) on delete cascade,
  user_id integer not null references users (id),
  redirect_uri text not null,
  code_challenge text,
  scope text not null,
  issued_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  redeemed_at timestamptz(3),
  family_id text collate "C" references authentication_events (id),
  constraint authorization_codes_redemption check ((state = 'redeemed') = (redeemed_at is not null)),
  constraint authorization_codes_family check ((state = 'redeemed') = (family_id is not null))
);
create index authorization_codes_user on authorization_codes (user_id);
create index authorization_codes_client on authorization_codes (client_id);
create index authorization_codes_expiry on authorization_codes (expires_at);
create table sign_in_locks (
  email_digest text primary key,
  failures integer not null check (failures >= 0),
  locks integer not null check (locks >= 0),
  locked_until timestamptz(3),
  last_failure_at timestamptz(3) not null
);
create index sign_in_locks_age on sign_in_locks (last_failure_at);
create table email_code_limits (
  email_digest text primary key,
  issued_at timestamptz(3)[] not null,
  wrong_at timestamptz(3)[] not null,
  touched_at timestamptz(3) not null
);
create index email_code_limits_age on email_code_limits (touched_at);
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
create table sso_connections (
  id text collate "C" primary key,
  company_id integer not null references companies (id),
  issuer text not null,
  client_id text not null,
  sealed_client_secret text not null,
  password_login boolean not null,
  is_active boolean not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);
create index sso_connections_company on sso_connections (company_id, id);
create table sso_domains (
  domain text primary key check (domain = lower(domain)),
  connection_id text collate "C" not null references sso_connections (id) on delete cascade
);
create index sso_domains_connection on sso_domains (connection_id);
create table sso_identities (
  issuer text not null,
  subject text not null,
  user_id integer not null references users (id),
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  linked_at timestamptz(3) not null,
  primary key (issuer, subject),
  unique (user_id, issuer)
);
create index sso_identities_connection on sso_identities (connection_id);
create table sso_states (
  state_hash text primary key,
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  browser_hash text not null,
  return_to text not null,
  code_challenge text,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3)
);
create index sso_states_expiry on sso_states (expires_at);
create index sso_states_connection on sso_states (connection_id);
create table sso_codes (
  code_hash text primary key,
  user_id integer not null references users (id),
  connection_id text collate "C" not null references sso_connections (id) on delete cascade,
  code_challenge text,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  consumed_at timestamptz(3)
);
create index sso_codes_expiry on sso_codes (expires_at);
create index sso_codes_user on sso_codes (user_id);
create index sso_codes_connection on sso_codes (connection_id);
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
create table review_sites (
  id integer generated always as identity primary key,
  slug text not null unique,
  name text not null,
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
create table provider_events (
  review_site_id integer not null references review_sites (id),
  id text collate "C" not null,
  received_at timestamptz(3) not null,
  primary key (review_site_id, id)
);
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
  profanity text[] not null default '{}',
  reviewed_at timestamptz(3) not null,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  removed_at timestamptz(3),
  response_body text,
  response_user_id integer references users (id),
  responded_at timestamptz(3),
  flag_status text check (flag_status in ('open', 'under_review', 'accepted', 'rejected', 'withdrawn')),
  flag_reason text,
  assigned_user_id integer references users (id),
  unique (store_review_site_id, external_review_id),
  constraint reviews_response check ((response_body is null) = (responded_at is null)),
  constraint reviews_flag check ((flag_status is null) = (flag_reason is null))
);
create index reviews_account on reviews (account_id, id desc);
create index reviews_store on reviews (store_id, id desc);
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
  constraint review_history_axis_of_site check ((site is null) = (axis is null)),
  constraint review_history_review_or_site check ((site is null) = (review is not null))
);
create index review_history_review on review_history (review_id, id) where review_id is not null;
create index review_history_partner on review_history (partner_id, recorded_at, id);
create index review_history_axis on review_history (store_review_site_id, axis, id)
  where event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                  'response_post_disconnected');
create table webhook_subscriptions (
  id text collate "C" primary key,
  partner_id integer not null references companies (id),
  shard smallint not null check (shard between 0 and 63),
  label text not null,
  webhook_url text not null,
  delivery_kind text not null check (delivery_kind in ('immediate', 'batch')),
  batch_interval_hours integer,
  events text[],
  payload_mode text not null check (payload_mode in ('full', 'minimal')),
  suppress_native_notifications boolean not null,
  ordering text not null check (ordering in ('subscription', 'review')),
  state text not null check (state in ('active', 'disabled', 'deleted')),
  consecutive_failure_count integer not null default 0 check (consecutive_failure_count >= 0),
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
create unique index webhook_subscriptions_slot on webhook_subscriptions (partner_id, delivery_kind)
  where state <> 'deleted';
create index webhook_subscriptions_partner on webhook_subscriptions (partner_id, id desc);
create index webhook_subscriptions_batch_due on webhook_subscriptions (shard, next_batch_at)
  where state = 'active' and next_batch_at is not null;
create index webhook_subscriptions_disabled on webhook_subscriptions (disabled_at desc, id)
  where state = 'disabled';
create table outbox_sequences (
  subscription_id text collate "C" primary key references webhook_subscriptions (id),
  last_sequence bigint not null default 0
) with (fillfactor = 50);
create table outbox (
  shard smallint not null,
  subscription_id text collate "C" not null,
  sequence bigint not null,
  event_id text collate "C" not null,
  event text not null,
  is_test boolean not null default false,
  payload_mode text not null check (payload_mode in ('full', 'minimal')),
  review_history_id bigint references review_history (id),
  review_id integer,
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
create index outbox_waiting on outbox (subscription_id, sequence) where state = 'waiting';
create table batch_entries (
  subscription_id text collate "C" not null references outbox_sequences (subscription_id) on delete cascade,
  review_history_id bigint not null references review_history (id),
  primary key (subscription_id, review_history_id)
) with (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02);
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
create index settled_entries_expired on settled_entries (subscription_id, settled_at) where reason = 'expired';
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
  resent boolean not null default false,
  payload_mode text check (payload_mode in ('full', 'minimal')),
  batch_job_id text collate "C",
  recorded_at timestamptz(3),
  primary key (subscription_id, id),
  constraint delivery_attempts_next check ((outcome = 'retry') = (next_attempt_at is not null)),
  constraint delivery_attempts_ended check ((recorded_at is null) = (payload_mode is null))
) partition by range (id);
create index delivery_attempts_event on delivery_attempts (event_id);
create index delivery_attempts_trouble on delivery_attempts (subscription_id, outcome, id)
  where outcome <> 'delivered';
create index delivery_attempts_of_event on delivery_attempts (subscription_id, event, id);
create table settled_entries_default partition of settled_entries default;
create table delivery_attempts_default partition of delivery_attempts default;
create table attempt_stats (
  subscription_id text collate "C" not null,
  step_s integer not null check (step_s in (300, 3600, 86400)),
  bucket_at timestamptz(3) not null,
  outcome text not null check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  bins smallint[] not null,
  counts integer[] not null,
  primary key (subscription_id, step_s, bucket_at, outcome),
  constraint attempt_stats_bins check (cardinality(bins) = cardinality(counts))
);
create table backlog_stats (
  subscription_id text collate "C" not null,
  bucket_at timestamptz(3) not null,
  entries integer not null,
  primary key (subscription_id, bucket_at)
);
create table stats_progress (
  id smallint primary key default 1 check (id = 1),
  counted_until timestamptz(3) not null
);
create table mails (
  id text collate "C" primary key,
  kind text not null,
  sealed_message text,
  state text not null default 'queued' check (state in ('queued', 'sent', 'dead')),
  attempt smallint not null default 1 check (attempt >= 1),
  due_at timestamptz(3),
  expires_at timestamptz(3),
  created_at timestamptz(3) not null,
  settled_at timestamptz(3),
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
create table dispatchers (
  id text collate "C" primary key,
  started_at timestamptz(3) not null,
  renewed_at timestamptz(3) not null
);
create table shards (
  id smallint primary key check (id between 0 and 63),
  dispatcher_id text collate "C" references dispatchers (id) on delete set null,
  epoch bigint not null default 0
);
create index shards_dispatcher on shards (dispatcher_id);
insert into shards (id) select generate_series(0, 63);
create table upkeep_progress (
  id smallint primary key default 1 check (id = 1),
  passed_at timestamptz(3) not null
);
insert into upkeep_progress (passed_at) values ('1970-01-01T00:00:00Z');
alter table shards add column orphaned boolean not null default false;
alter table delivery_attempts add column possibly_repeated boolean not null default false;
create table outbox_marks (
  subscription_id text collate "C" primary key,
  shard smallint not null,
  through bigint not null,
  reason text not null check (reason in ('deleted', 'skipped')),
  settled_at timestamptz(3) not null
);
create table batch_windows (
  subscription_id text collate "C" primary key references outbox_sequences (subscription_id) on delete cascade,
  id text collate "C" not null,
  opened_at timestamptz(3) not null,
  through bigint not null,
  first_id bigint not null default 0,
  review_id integer
);
create index outbox_test_due on outbox (shard, subscription_id, due_at nulls first, sequence) where is_test;
drop index outbox_test;
alter table outbox set (vacuum_truncate = false);
alter table batch_entries set (vacuum_truncate = false);
alter table outbox_sequences set (vacuum_truncate = false);
alter table webhook_subscriptions set (vacuum_truncate = false);
alter table review_history set (vacuum_truncate = false);
alter table delivery_attempts
  alter column request_headers drop not null,
  alter column request_body drop not null,
  add column composer smallint,
  add column host text,
  add column signature bytea,
  add column previous_signature bytea,
  add column body_digest bytea;
alter table delivery_attempts add constraint delivery_attempts_request check (
  case when composer is null then request_headers is not null and request_body is not null
       else host is not null and signature is not null and body_digest is not null end) not valid;
drop index delivery_attempts_of_event;
create index delivery_attempts_default_of_event on delivery_attempts_default (subscription_id, event, id);
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % never change', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger review_history_fixed before update on review_history
  for each row execute function refuse_change();
alter table oauth_clients add column created_by uuid references oauth_clients (client_id) on delete set null;
create index oauth_clients_created_by on oauth_clients (created_by) where created_by is not null;
create table email_code_tries (
  email_digest text not null,
  network text not null,
  wrong_at timestamptz(3)[] not null,
  touched_at timestamptz(3) not null,
  primary key (email_digest, network)
);
create index email_code_tries_age on email_code_tries (touched_at);
create table invitations (
  user_id integer primary key references users (id),
  code_hash text not null constraint invitations_code_hash_key unique,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
create index authorization_codes_family on authorization_codes (family_id) where family_id is not null;
alter table reviews
  drop constraint reviews_partner_id_fkey,
  drop constraint reviews_account_id_fkey,
  drop constraint reviews_store_id_fkey;
alter table review_history
  drop constraint review_history_partner_id_fkey,
  drop constraint review_history_account_id_fkey,
  drop constraint review_history_store_id_fkey;
alter table dispatchers add column memory_mb integer;
create table token_uses (
  jti text collate "C" not null constraint token_uses_jti_fkey references tokens (jti) on delete cascade,
  route text not null,
  ip text not null,
  first_used_at timestamptz(3) not null,
  last_used_at timestamptz(3) not null,
  primary key (jti, route, ip)
);
create table alert_settings (
  id text collate "C" primary key,
  partner_id integer not null constraint alert_settings_partner_id_key unique references companies (id),
  recipients text[],
  kinds text[] not null,
  oldest_waiting_minutes integer not null constraint alert_settings_oldest_waiting_minutes_check
    check (oldest_waiting_minutes between 10 and 1440),
  digest_minutes integer not null constraint alert_settings_digest_minutes_check
    check (digest_minutes between 0 and 1440),
  webhook_url text,
  sealed_secret text,
  secret_fingerprint text,
  updated_at timestamptz(3) not null,
  constraint alert_settings_webhook
    check ((webhook_url is null) = (sealed_secret is null) and (webhook_url is null) = (secret_fingerprint is null))
);
create table incidents (
  id text collate "C" primary key,
  subscription_id text collate "C" not null references webhook_subscriptions (id),
  partner_id integer not null references companies (id),
  opened_at timestamptz(3) not null,
  disabled_at timestamptz(3),
  failures integer not null,
  is_told boolean not null,
  ended_at timestamptz(3),
  ended_by text,
  constraint incidents_ended check ((ended_at is null) = (ended_by is null)),
  constraint incidents_ended_by_check check (ended_by in ('recovered', 'enabled', 'deleted'))
);
create unique index incidents_open on incidents (subscription_id) where ended_at is null;
create index incidents_subscription on incidents (subscription_id, id);
create index incidents_old on incidents (ended_at) where ended_at is not null;
create table alerts (
  id text collate "C" primary key,
  incident_id text collate "C" not null references incidents (id) on delete cascade,
  subscription_id text collate "C" not null,
  partner_id integer not null,
  kind text not null,
  raised_at timestamptz(3) not null,
  cause json not null,
  mail_state text not null,
  mailed_at timestamptz(3),
  webhook_state text not null,
  webhook_attempt smallint not null default 0,
  webhook_due_at timestamptz(3),
  webhook_error text,
  constraint alerts_kind_check check (kind in
    ('head_retrying', 'failures_5', 'failures_10', 'failures_18', 'oldest_waiting', 'disabled', 'recovered')),
  constraint alerts_mail_state_check check (mail_state in ('none', 'pending', 'queued')),
  constraint alerts_mailed check ((mail_state = 'queued') = (mailed_at is not null)),
  constraint alerts_webhook_state_check check (webhook_state in ('none', 'queued', 'sent', 'dead')),
  constraint alerts_webhook_due check ((webhook_state = 'queued') = (webhook_due_at is not null))
);
create unique index alerts_once on alerts (incident_id, kind);
create index alerts_unmailed on alerts (partner_id) where mail_state = 'pending';
create index alerts_mailed on alerts (partner_id, mailed_at) where mail_state = 'queued';
create index alerts_webhook_due on alerts (webhook_due_at) where webhook_state = 'queued';
create index webhook_subscriptions_failing on webhook_subscriptions (id)
  where state = 'active' and consecutive_failure_count > 0;
insert into incidents (id, subscription_id, partner_id, opened_at, disabled_at, failures, is_told)
select id, id, partner_id, disabled_at, disabled_at, consecutive_failure_count, true
  from webhook_subscriptions where state = 'disabled';
insert into alerts (id, incident_id, subscription_id, partner_id, kind, raised_at, cause, mail_state, webhook_state)
select id, id, id, partner_id, 'disabled', disabled_at, '{}', 'none', 'none'
  from webhook_subscriptions where state = 'disabled';
alter table outbox drop constraint outbox_review_history_id_fkey;
alter table batch_entries drop constraint batch_entries_review_history_id_fkey;
create table portal_settings (
  partner_id integer primary key references companies (id),
  key text collate "C" not null constraint portal_settings_key_key unique,
  origins text[] not null
);
create table portal_links (
  code_hash text collate "C" primary key,
  jti text collate "C" not null constraint portal_links_jti_fkey references tokens (jti) on delete cascade,
  scope text not null,
  pages text[] not null,
  expires_at timestamptz(3) not null
);
create index portal_links_jti on portal_links (jti);
create index portal_links_expiry on portal_links (expires_at);
alter table tokens add column pages text[];
alter table tokens drop constraint tokens_kind_check;
alter table tokens add constraint tokens_kind_check check (kind in
  ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset', 'portal')) not valid;
alter table tokens add constraint tokens_held_to_pages check ((kind = 'portal') = (pages is not null)) not valid;
alter table authentication_events drop constraint authentication_events_method_check;
alter table authentication_events add constraint authentication_events_method_check check (method in
  ('login', 'password_grant', 'authorization_code', 'sso', 'password_reset', 'impersonation', 'portal')) not valid;
alter table portal_links add column acts_as integer constraint portal_links_acts_as_fkey references users (id);
alter table tokens drop constraint tokens_impersonation;
alter table tokens add constraint tokens_impersonation check (case kind
  when 'impersonation' then impersonator_id is not null
  when 'portal' then true
  else impersonator_id is null end) not valid;
alter table provider_events drop constraint provider_events_review_site_id_fkey;
alter table review_history drop constraint review_history_store_review_site_id_fkey;
do $$ begin
  if exists (select from delivery_attempts) then
    create index delivery_attempts_event_prefix on only delivery_attempts (left(event_id, 15));
  else
    create index delivery_attempts_event_prefix on delivery_attempts (left(event_id, 15));
    drop index delivery_attempts_event;
  end if;
end $$;
create trigger reviews_kept before delete on reviews
  for each row execute function refuse_change();
create trigger store_review_sites_kept before delete on store_review_sites
  for each row execute function refuse_change();
alter table reviews drop constraint reviews_store_review_site_id_fkey;
alter table review_history drop constraint review_history_review_id_fkey;
create schema drizzle;
create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
insert into drizzle.__drizzle_migrations (hash, created_at) values ('0001_baseline', 1796040000000), ('0022_implied_keys', 1796140000000);
