-- A link that an operator makes opens the pages in the name of one of the partner's owners (contract 6.20).
alter table portal_links add column acts_as integer constraint portal_links_acts_as_fkey references users (id);

-- Its session names the operator, as a token that acts as an account's owner names who asked for it.
alter table tokens drop constraint tokens_impersonation;
alter table tokens add constraint tokens_impersonation check (case kind
  when 'impersonation' then impersonator_id is not null
  when 'portal' then true
  else impersonator_id is null end) not valid;
