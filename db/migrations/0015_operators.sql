-- What a dispatcher's process holds in memory, told with its heartbeat, for the operators' page; null of an older one.
alter table dispatchers add column memory_mb integer;

-- Where tokens that live apart from a sign-in are used, by route and address: the hundred newest pairs of each token.
create table token_uses (
  jti text collate "C" not null constraint token_uses_jti_fkey references tokens (jti) on delete cascade,
  route text not null,
  ip text not null,
  first_used_at timestamptz(3) not null,
  last_used_at timestamptz(3) not null,
  primary key (jti, route, ip)
);
