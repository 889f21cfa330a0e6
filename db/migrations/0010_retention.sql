-- A sign-in is removed once it is old and nothing stems from it any more. Postgres looks for codes of it by this index.
create index authorization_codes_family on authorization_codes (family_id) where family_id is not null;
