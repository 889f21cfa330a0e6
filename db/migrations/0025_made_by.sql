-- The token that made this one, of a portal session or an impersonation, and with which this one ends (contract 4.23).
-- Of those that are there already nobody knows the maker: they end by themselves, within a day.
alter table tokens add column parent_jti text collate "C"
  constraint tokens_parent_jti_fkey references tokens (jti) on delete cascade;
create index tokens_parent on tokens (parent_jti) where parent_jti is not null;
alter table tokens add constraint tokens_made check
  (parent_jti is null or kind in ('impersonation', 'portal')) not valid;
