-- A review takes its connection from store_review_sites in its own statement, and an action its review from a row that the
-- same transaction inserted or holds. Reviews and connections are never removed, which is held here; so the keys said what
-- is known, and each event looked both rows up again and locked them.
create trigger reviews_kept before delete on reviews
  for each row execute function refuse_change();
create trigger store_review_sites_kept before delete on store_review_sites
  for each row execute function refuse_change();
alter table reviews drop constraint reviews_store_review_site_id_fkey;
alter table review_history drop constraint review_history_review_id_fkey;
