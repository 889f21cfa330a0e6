-- What db/schema cannot declare, written by hand: checks, indexes that are not unique, the default partition, storage
-- parameters, triggers, views and the first rows. tests/integration/db/schema.test.ts compares the values of text
-- columns with the schema.

------------------------------------------------------------------------------------------------ companies and users

alter table companies
  add constraint companies_type_check check (type in ('platform', 'partner', 'account')),
  -- Only an account belongs to a partner, and only an account has a plan (contract 4.5).
  add constraint companies_account_partner check ((type = 'account') = (partner_id is not null)),
  add constraint companies_account_plan check ((type = 'account') = (plan_id is not null));
create index companies_partner on companies (partner_id, id) where partner_id is not null;
-- The administration lists partners and accounts, the newest first.
create index companies_type on companies (type, id);
create index stores_account on stores (account_id, id);

alter table users
  add constraint users_email_check check (email = lower(btrim(email))),
  add constraint users_role_check check (role in
    ('super_admin', 'partner_owner', 'partner_admin', 'account_owner', 'account_user', 'location_user'));
create index users_company on users (company_id, id);

create index audit_log_action on audit_log (action, id desc);
create index audit_log_actor on audit_log (actor_id, id desc);
create index audit_log_company on audit_log (company_id, id desc);
create index audit_log_at on audit_log (at);

------------------------------------------------------------------------------------------------ tokens

alter table signing_keys
  add constraint signing_keys_state_check check (state in ('next', 'current', 'retired')),
  add constraint signing_keys_activated check ((state = 'next') = (activated_at is null)),
  add constraint signing_keys_retirement check ((state = 'retired') = (retired_at is not null));
-- The purge finds retired keys by age.
create index signing_keys_retired on signing_keys (retired_at) where state = 'retired';

alter table oauth_clients add constraint oauth_clients_secret check (confidential = (secret_hash is not null));
create index oauth_clients_company on oauth_clients (company_id, created_at);
create index oauth_clients_created_by on oauth_clients (created_by) where created_by is not null;

alter table authentication_events add constraint authentication_events_method_check check (method in
  ('login', 'password_grant', 'authorization_code', 'sso', 'password_reset', 'impersonation', 'portal'));
create index authentication_events_user on authentication_events (user_id, id desc);

alter table tokens
  add constraint tokens_kind_check check (kind in
    ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset', 'portal')),
  -- The session of an operator's portal link names the operator.
  add constraint tokens_impersonation check (case kind
    when 'impersonation' then impersonator_id is not null
    when 'portal' then true
    else impersonator_id is null end),
  add constraint tokens_named check ((kind = 'api_pat') = (name is not null)),
  add constraint tokens_viewable check ((kind = 'dashboard_pat') = (sealed_token is not null)),
  add constraint tokens_endless check ((kind = 'dashboard_pat') = (expires_at is null)),
  add constraint tokens_redeemable check (kind = 'refresh' or redeemed_at is null),
  add constraint tokens_held_to_pages check ((kind = 'portal') = (pages is not null)),
  add constraint tokens_made check (parent_jti is null or kind in ('impersonation', 'portal'));
create index tokens_user on tokens (user_id);
create index tokens_family on tokens (family_id);
create index tokens_impersonator on tokens (impersonator_id) where impersonator_id is not null;
create index tokens_client on tokens (client_id) where client_id is not null;
create index tokens_expiry on tokens (expires_at) where expires_at is not null;
create index tokens_kid on tokens (kid);
create index tokens_parent on tokens (parent_jti) where parent_jti is not null;

alter table authorization_codes
  add constraint authorization_codes_state_check check (state in ('consent', 'issued', 'redeemed')),
  add constraint authorization_codes_redemption check ((state = 'redeemed') = (redeemed_at is not null)),
  add constraint authorization_codes_family check ((state = 'redeemed') = (family_id is not null));
-- A password reset deletes the user's rows. The deletion of a client deletes the client's rows.
create index authorization_codes_user on authorization_codes (user_id);
create index authorization_codes_client on authorization_codes (client_id);
create index authorization_codes_expiry on authorization_codes (expires_at);
-- The removal of an old sign-in looks for its codes.
create index authorization_codes_family on authorization_codes (family_id) where family_id is not null;

create index portal_links_jti on portal_links (jti);
create index portal_links_expiry on portal_links (expires_at);

------------------------------------------------------------------------------------------------ sign-in

alter table sign_in_locks
  add constraint sign_in_locks_failures_check check (failures >= 0),
  add constraint sign_in_locks_locks_check check (locks >= 0);
create index sign_in_locks_age on sign_in_locks (last_failure_at);
create index email_code_limits_age on email_code_limits (touched_at);
create index email_code_tries_age on email_code_tries (touched_at);

alter table email_codes
  add constraint email_codes_type_check check (type in ('forgot_password', 'change_password', 'signup')),
  add constraint email_codes_tries_check check (tries >= 0),
  add constraint email_codes_signup check (type <> 'signup' or user_id is null);
create index email_codes_expiry on email_codes (expires_at);

alter table sso_domains add constraint sso_domains_domain_check check (domain = lower(domain));
create index sso_connections_company on sso_connections (company_id, id);
create index sso_domains_connection on sso_domains (connection_id);
create index sso_identities_connection on sso_identities (connection_id);
create index sso_states_expiry on sso_states (expires_at);
create index sso_states_connection on sso_states (connection_id);
create index sso_codes_expiry on sso_codes (expires_at);
create index sso_codes_user on sso_codes (user_id);
create index sso_codes_connection on sso_codes (connection_id);

------------------------------------------------------------------------------------------------ reviews

alter table store_review_sites
  add constraint store_review_sites_pull_axis check (pull_connected = (pull_error_code is null)),
  add constraint store_review_sites_post_axis check (post_connected = (post_error_code is null));
create index store_review_sites_account on store_review_sites (account_id, id);

alter table reviews
  add constraint reviews_rate_check check (rate between 1 and 5),
  add constraint reviews_flag_status_check check
    (flag_status in ('open', 'under_review', 'accepted', 'rejected', 'withdrawn')),
  add constraint reviews_response check ((response_body is null) = (responded_at is null)),
  add constraint reviews_flag check ((flag_status is null) = (flag_reason is null));
create index reviews_account on reviews (account_id, id desc);
create index reviews_store on reviews (store_id, id desc);

alter table review_history
  add constraint review_history_axis_check check (axis in ('pull', 'post')),
  -- A review event shows the review, a site-connection event the site and its axis (contract 8.2 and 8.3).
  add constraint review_history_axis_of_site check ((site is null) = (axis is null)),
  add constraint review_history_review_or_site check ((site is null) = (review is not null)),
  add constraint review_history_log_entry check (num_nulls(sequence, subscription_number, is_minimal) in (0, 3));
create index review_history_review on review_history (review_id, id) where review_id is not null;
create index review_history_partner on review_history (partner_id, recorded_at, id);
-- Finds the last change of an axis of a store's review site. The index contains changes only, so that other events
-- cost nothing.
create index review_history_axis on review_history (store_review_site_id, axis, id)
  where event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                  'response_post_disconnected');

------------------------------------------------------------------------------------------------ webhooks and outbox

alter table webhook_subscriptions
  add constraint webhook_subscriptions_shard_check check (shard between 0 and 63),
  add constraint webhook_subscriptions_delivery_kind_check check (delivery_kind in ('immediate', 'batch')),
  add constraint webhook_subscriptions_payload_mode_check check (payload_mode in ('full', 'minimal')),
  add constraint webhook_subscriptions_ordering_check check (ordering in ('subscription', 'review')),
  add constraint webhook_subscriptions_state_check check (state in ('active', 'disabled', 'deleted')),
  add constraint webhook_subscriptions_consecutive_failure_count_check check (consecutive_failure_count >= 0),
  add constraint webhook_subscriptions_batch_interval
    check ((delivery_kind = 'batch') = (batch_interval_hours is not null)),
  add constraint webhook_subscriptions_batch_at check ((delivery_kind = 'batch') = (next_batch_at is not null)),
  add constraint webhook_subscriptions_batch_settings check (delivery_kind = 'immediate'
    or (payload_mode = 'full' and not suppress_native_notifications and ordering = 'subscription')),
  add constraint webhook_subscriptions_active check (state <> 'active' or disabled_at is null),
  add constraint webhook_subscriptions_disabled check (state <> 'disabled' or disabled_at is not null),
  add constraint webhook_subscriptions_disabled_reason check ((disabled_at is null) = (disabled_reason is null)),
  add constraint webhook_subscriptions_deleted check ((state = 'deleted') = (deleted_at is not null)),
  add constraint webhook_subscriptions_previous_secret
    check ((sealed_previous_secret is null) = (previous_secret_expires_at is null));
create index webhook_subscriptions_partner on webhook_subscriptions (partner_id, id desc);
create index webhook_subscriptions_batch_due on webhook_subscriptions (shard, next_batch_at)
  where state = 'active' and next_batch_at is not null;
-- The administration lists disabled subscriptions, the latest first. Active ones cost nothing.
create index webhook_subscriptions_disabled on webhook_subscriptions (disabled_at desc, id) where state = 'disabled';
-- The alerts read the few subscriptions that fail now. A subscription that delivers costs nothing.
create index webhook_subscriptions_failing on webhook_subscriptions (id)
  where state = 'active' and consecutive_failure_count > 0;
create index webhook_subscriptions_immediate on webhook_subscriptions (shard)
  where state <> 'deleted' and delivery_kind = 'immediate';

alter table outbox
  add constraint outbox_payload_mode_check check (payload_mode in ('full', 'minimal')),
  add constraint outbox_round_check check (round >= 1),
  add constraint outbox_attempt_check check (attempt between 1 and 4),
  add constraint outbox_state_check check (state in ('pending', 'waiting')),
  add constraint outbox_due check ((state = 'waiting') = (due_at is not null)),
  add constraint outbox_history check (is_test = (review_history_id is null));
create index outbox_event on outbox (event_id);
-- A load reads the 16 test events that are due first, and the sweep reads the first one only.
create index outbox_test_due on outbox (shard, subscription_id, due_at nulls first, sequence) where is_test;
-- Finds the entries that block a lane. Entries that are delivered at once cost nothing.
create index outbox_waiting on outbox (subscription_id, sequence) where state = 'waiting';
create index outbox_skipped on outbox (skipped_at) where skipped_at is not null;
alter table outbox_skips add constraint outbox_skips_reason_check check (reason in ('deleted', 'expired', 'skipped'));

-- Storage. The tables of queues keep their empty pages, because truncating a table locks out all other sessions.
-- With free space in its page, an update touches no index.
alter table outbox_offsets set (fillfactor = 20);
alter table outbox_sequences set (fillfactor = 50, vacuum_truncate = false);
alter table outbox set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false);
alter table batch_entries set (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.02, vacuum_truncate = false);
alter table webhook_subscriptions set (vacuum_truncate = false);
alter table review_history set (vacuum_truncate = false);

------------------------------------------------------------------------------------------------ attempts

alter table delivery_attempts
  add constraint delivery_attempts_outcome_check check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  add constraint delivery_attempts_payload_mode_check check (payload_mode in ('full', 'minimal')),
  add constraint delivery_attempts_next check ((outcome = 'retry') = (next_attempt_at is not null)),
  add constraint delivery_attempts_ended check ((recorded_at is null) = (payload_mode is null)),
  -- An attempt keeps its request, or the values from which the request is composed again.
  add constraint delivery_attempts_request check (
    case when payload_format is null then request_headers is not null and request_body is not null
         else host is not null and signature is not null and body_digest is not null end);
-- Finds the attempts of an event by the time and 25 random bits of its id, which takes two thirds of the space.
create index delivery_attempts_event_prefix on delivery_attempts (left(event_id, 15));
-- `deliveries?outcome=` for all outcomes but delivered, so that a successful attempt costs nothing. The newest
-- successful attempts are near the end of the primary key, because 20 failures in a row disable a subscription.
-- `event` is in the index for `deliveries?event=…&outcome=failed`: at 10^7 attempts the list took 214 ms without it.
create index delivery_attempts_trouble on delivery_attempts (subscription_id, outcome, id, event)
  where outcome <> 'delivered';

-- The default partition takes rows outside of all daily partitions, so that a wrong clock does not stop deliveries.
create table delivery_attempts_default partition of delivery_attempts default;
-- `deliveries?event=`. Maintenance creates this index for each day that has ended, so that commits do not pay for it.
create index delivery_attempts_default_of_event on delivery_attempts_default (subscription_id, event, id);

alter table attempt_stats
  add constraint attempt_stats_step_s_check check (step_s in (300, 3600, 86400)),
  add constraint attempt_stats_outcome_check check (outcome in ('delivered', 'retry', 'failed', 'interrupted')),
  add constraint attempt_stats_bins check (cardinality(bins) = cardinality(counts));
alter table stats_progress add constraint stats_progress_id_check check (id = 1);

------------------------------------------------------------------------------------------------ alerts and mails

alter table alert_settings
  add constraint alert_settings_oldest_waiting_minutes_check check (oldest_waiting_minutes between 10 and 1440),
  add constraint alert_settings_digest_minutes_check check (digest_minutes between 0 and 1440),
  add constraint alert_settings_webhook
    check ((webhook_url is null) = (sealed_secret is null) and (webhook_url is null) = (secret_fingerprint is null));

alter table incidents
  add constraint incidents_ended check ((ended_at is null) = (ended_by is null)),
  add constraint incidents_ended_by_check check (ended_by in ('recovered', 'enabled', 'deleted'));
create index incidents_subscription on incidents (subscription_id, id);
create index incidents_old on incidents (ended_at) where ended_at is not null;

alter table alerts
  add constraint alerts_kind_check check (kind in
    ('head_retrying', 'failures_5', 'failures_10', 'failures_18', 'oldest_waiting', 'disabled', 'recovered')),
  add constraint alerts_mail_state_check check (mail_state in ('none', 'pending', 'queued')),
  add constraint alerts_mailed check ((mail_state = 'queued') = (mailed_at is not null)),
  add constraint alerts_webhook_state_check check (webhook_state in ('none', 'queued', 'sent', 'dead')),
  add constraint alerts_webhook_due check ((webhook_state = 'queued') = (webhook_due_at is not null));
create index alerts_unmailed on alerts (partner_id) where mail_state = 'pending';
create index alerts_mailed on alerts (partner_id, mailed_at) where mail_state = 'queued';
create index alerts_webhook_due on alerts (webhook_due_at) where webhook_state = 'queued';

alter table mails
  add constraint mails_state_check check (state in ('queued', 'sent', 'dead')),
  add constraint mails_attempt_check check (attempt >= 1),
  add constraint mails_message check ((state = 'queued') = (sealed_message is not null)),
  add constraint mails_due check ((state = 'queued') = (due_at is not null)),
  add constraint mails_settled check ((state = 'queued') = (settled_at is null)),
  add constraint mails_dead check (state <> 'dead' or error_code is not null),
  add constraint mails_error check ((error_code is null) = (last_error is null));
alter table mails set (fillfactor = 80);
create index mails_due on mails (due_at, id) where state = 'queued';
create index mails_settled on mails (settled_at) where state <> 'queued';

------------------------------------------------------------------------------------------------ processes

alter table shards add constraint shards_id_check check (id between 0 and 63);
create index shards_dispatcher on shards (dispatcher_id);
insert into shards (id) select generate_series(0, 63);

alter table processes add constraint processes_role_check check (role in ('api', 'dispatcher'));

alter table maintenance_jobs add constraint maintenance_jobs_held check ((holder is null) = (leased_until is null));
-- In a new database all jobs are due.
insert into maintenance_jobs (name, next_at)
select name, now()
  from unnest(array[
         'alerts', 'attempts', 'audit_log', 'batch_entries', 'credentials', 'day_indexes', 'default_partitions', 'held_entries',
         'history', 'incidents', 'lost_sessions', 'mails', 'partitions', 'sign_ins', 'skipped_entries', 'stats']) as jobs(name);

------------------------------------------------------------------------------------------------ triggers

-- The body of an event is composed from its row of review_history, so the row never changes (contract 7.3).
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % never change', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger review_history_fixed before update on review_history
  for each row execute function refuse_change();

-- Reviews and connections are never removed. These triggers replace foreign keys from reviews and review_history, which
-- cost each event several look-ups and row locks.
create trigger reviews_kept before delete on reviews
  for each row execute function refuse_change();
create trigger store_review_sites_kept before delete on store_review_sites
  for each row execute function refuse_change();

-- Refuses to delete a row of review_history while an entry or a waiting batch needs it. Each check is one probe of an
-- index. Maintenance deletes only rows that nothing needs.
create function keep_queued_history() returns trigger language plpgsql as $$
begin
  if exists (select from outbox o
                 cross join lateral (
                  select from outbox_offsets f
                   where f.subscription_id = o.subscription_id and f.skipped_through < o.sequence offset 0) f
                 where o.event_id = old.event_id and o.skipped_at is null)
     or exists (select from webhook_subscriptions s
                 cross join lateral (
                  select from outbox_offsets f
                   where f.subscription_id = s.id and f.settled_through < old.sequence offset 0) f
                 where s.number = old.subscription_number)
     or exists (select from webhook_subscriptions s
                 cross join lateral (
                  select from batch_entries b
                   where b.subscription_id = s.id and b.review_history_id = old.id offset 0) b
                 cross join lateral (
                  select from outbox_sequences q
                   where q.subscription_id = s.id and q.batch_skipped_through < old.id offset 0) q
                 where s.partner_id = old.partner_id) then
    raise exception 'event % is still queued for a webhook', old.event_id
      using errcode = 'restrict_violation', hint = 'Delete or skip what is queued first.';
  end if;
  return old;
end $$;
create trigger review_history_kept before delete on review_history
  for each row execute function keep_queued_history();

------------------------------------------------------------------------------------------------ views

-- Entries of the outbox and of the log that are still to be delivered.
create view queued_entries as
select o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id, o.review_id,
       o.batch_job_id, o.round, o.recorded_at, o.attempt, o.state, o.due_at
  from outbox o join outbox_offsets f on f.subscription_id = o.subscription_id
 where o.sequence > f.skipped_through and o.skipped_at is null
 union all
select s.id, h.sequence, h.event_id, h.event, false, case when h.is_minimal then 'minimal' else 'full' end, h.id,
       h.review_id, null, 1::smallint, h.recorded_at, 1::smallint, 'pending', null
  from review_history h
  join webhook_subscriptions s on s.number = h.subscription_number
  join outbox_offsets f on f.subscription_id = s.id
 where h.sequence > f.settled_through;

-- Entries that were skipped, with the reason.
create view skipped_entries as
select o.subscription_id, o.sequence, o.event_id, o.event, o.is_test, o.payload_mode, o.review_history_id, o.review_id,
       o.batch_job_id, o.round, o.recorded_at, coalesce(k.reason, 'skipped') as reason,
       coalesce(o.skipped_at, k.skipped_at) as skipped_at
  from outbox o join outbox_offsets f on f.subscription_id = o.subscription_id
  left join lateral (
         select reason, skipped_at from outbox_skips
          where subscription_id = o.subscription_id and last >= o.sequence and o.skipped_at is null
          order by last limit 1) k on true
 where o.skipped_at is not null or o.sequence <= f.skipped_through
 union all
select s.id, h.sequence, h.event_id, h.event, false, case when h.is_minimal then 'minimal' else 'full' end, h.id,
       h.review_id, null, 1::smallint, h.recorded_at, k.reason, k.skipped_at
  from review_history h
  join webhook_subscriptions s on s.number = h.subscription_number
 cross join lateral (
         select first, reason, skipped_at from outbox_skips
          where subscription_id = s.id and last >= h.sequence order by last limit 1) k
 where h.sequence >= k.first;
