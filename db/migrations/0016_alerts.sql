-- What a partner wants to be told of trouble with its webhooks, and where (contract 7.17); without a row the defaults hold.
create table alert_settings (
  id text collate "C" primary key,
  partner_id integer not null constraint alert_settings_partner_id_key unique references companies (id),
  -- Null: the partner's owners.
  recipients text[],
  kinds text[] not null,
  oldest_waiting_minutes integer not null constraint alert_settings_oldest_waiting_minutes_check
    check (oldest_waiting_minutes between 10 and 1440),
  -- At most one mail in so long; what is raised meanwhile comes in one.
  digest_minutes integer not null constraint alert_settings_digest_minutes_check
    check (digest_minutes between 0 and 1440),
  webhook_url text,
  -- Sealed with the partner's id and this row's as context, so that a swapped ciphertext does not open.
  sealed_secret text,
  secret_fingerprint text,
  updated_at timestamptz(3) not null,
  constraint alert_settings_webhook
    check ((webhook_url is null) = (sealed_secret is null) and (webhook_url is null) = (secret_fingerprint is null))
);

-- A stretch of trouble of a subscription: begins with its first alert, ends with the next 2xx, an enable or the delete.
create table incidents (
  id text collate "C" primary key,
  subscription_id text collate "C" not null references webhook_subscriptions (id),
  partner_id integer not null references companies (id),
  -- A 2xx that came later than this ends it.
  opened_at timestamptz(3) not null,
  -- Of the subscription, as it was last looked at: what differs says that it was enabled, or answered 2xx, in between.
  disabled_at timestamptz(3),
  failures integer not null,
  -- Whether anybody was told, so that the end is told, too.
  is_told boolean not null,
  ended_at timestamptz(3),
  ended_by text,
  constraint incidents_ended check ((ended_at is null) = (ended_by is null)),
  constraint incidents_ended_by_check check (ended_by in ('recovered', 'enabled', 'deleted'))
);
create unique index incidents_open on incidents (subscription_id) where ended_at is null;
create index incidents_subscription on incidents (subscription_id, id);
create index incidents_old on incidents (ended_at) where ended_at is not null;

-- Each kind once in an incident. The row is the queue of both ways to tell it.
create table alerts (
  id text collate "C" primary key,
  incident_id text collate "C" not null references incidents (id) on delete cascade,
  subscription_id text collate "C" not null,
  partner_id integer not null,
  kind text not null,
  raised_at timestamptz(3) not null,
  -- What was known then: failures, the first and the last one, what waits.
  cause json not null,
  -- none: not wanted. pending: in the next mail to the partner. queued: that mail is in `mails` since mailed_at.
  mail_state text not null,
  mailed_at timestamptz(3),
  -- none: not wanted. queued: a POST is due at webhook_due_at. sent: answered 2xx. dead: given up.
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

-- The few that fail now; a subscription that delivers pays nothing for it.
create index webhook_subscriptions_failing on webhook_subscriptions (id)
  where state = 'active' and consecutive_failure_count > 0;

-- The owners of what is disabled already were told by the version before.
insert into incidents (id, subscription_id, partner_id, opened_at, disabled_at, failures, is_told)
select id, id, partner_id, disabled_at, disabled_at, consecutive_failure_count, true
  from webhook_subscriptions where state = 'disabled';
insert into alerts (id, incident_id, subscription_id, partner_id, kind, raised_at, cause, mail_state, webhook_state)
select id, id, id, partner_id, 'disabled', disabled_at, '{}', 'none', 'none'
  from webhook_subscriptions where state = 'disabled';
