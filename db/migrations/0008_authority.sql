-- By the token of which third-party client a client was made: the tokens of that one alone, of all third parties, may
-- touch it (contract 5.6). Of those that are there already nobody knows, so no third party touches them.
alter table oauth_clients add column created_by uuid references oauth_clients (client_id) on delete set null;
create index oauth_clients_created_by on oauth_clients (created_by) where created_by is not null;

-- Wrong codes by email and address, so that a stranger does not use up an owner's day (contract 4.14). All of an email
-- stay in email_code_limits, where a process of the version before counts them too.
create table email_code_tries (
  email_digest text not null,
  -- An IPv4 address, or the /64 of an IPv6 address.
  network text not null,
  wrong_at timestamptz(3)[] not null,
  touched_at timestamptz(3) not null,
  primary key (email_digest, network)
);
create index email_code_tries_age on email_code_tries (touched_at);
