-- A review changes with every action, so the refusal to delete one says when its row is deleted (contract 10.8).
create or replace function keep_reviews() returns trigger language plpgsql as $$
begin
  if not is_leaving(array[old.account_id, old.partner_id]) then
    raise exception 'rows of % are deleted only with their account or partner', tg_table_name
      using errcode = 'restrict_violation';
  end if;
  return old;
end $$;
