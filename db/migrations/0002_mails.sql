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
  check ((state = 'queued') = (sealed_message is not null)),
  check ((state = 'queued') = (due_at is not null)),
  check ((state = 'queued') = (settled_at is null)),
  check (state <> 'dead' or error_code is not null),
  check ((error_code is null) = (last_error is null))
) with (fillfactor = 80);
create index mails_due on mails (due_at, id) where state = 'queued';
create index mails_settled on mails (settled_at) where state <> 'queued';
