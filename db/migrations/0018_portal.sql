-- Who may show a partner's portal in a frame (contract 6.20); the key stands in the addresses of its pages.
create table portal_settings (
  partner_id integer primary key references companies (id),
  key text collate "C" not null constraint portal_settings_key_key unique,
  origins text[] not null
);

-- A link that opens chosen pages once: its row goes with the first use, and with the token that made it.
create table portal_links (
  code_hash text collate "C" primary key,
  jti text collate "C" not null constraint portal_links_jti_fkey references tokens (jti) on delete cascade,
  scope text not null,
  pages text[] not null,
  expires_at timestamptz(3) not null
);
create index portal_links_jti on portal_links (jti);
create index portal_links_expiry on portal_links (expires_at);

-- What a token of such a link opens; null of every other one, which is not held to pages.
alter table tokens add column pages text[];
alter table tokens drop constraint tokens_kind_check;
alter table tokens add constraint tokens_kind_check check (kind in
  ('access', 'refresh', 'dashboard_pat', 'api_pat', 'impersonation', 'password_reset', 'portal')) not valid;
alter table tokens add constraint tokens_held_to_pages check ((kind = 'portal') = (pages is not null)) not valid;
alter table authentication_events drop constraint authentication_events_method_check;
alter table authentication_events add constraint authentication_events_method_check check (method in
  ('login', 'password_grant', 'authorization_code', 'sso', 'password_reset', 'impersonation', 'portal')) not valid;
