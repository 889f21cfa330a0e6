-- The link by which a user without a password sets the first one (contract 4.22); the last one alone counts.
create table invitations (
  user_id integer primary key references users (id),
  code_hash text not null constraint invitations_code_hash_key unique,
  created_at timestamptz(3) not null,
  expires_at timestamptz(3) not null
);
