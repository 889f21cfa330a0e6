-- A review and its history refer to their store's connection, which refers to the store, its account and its partner, and
-- none of these is ever removed while something refers to it. To prove that anew for each event cost six look-ups and six
-- row locks.
alter table reviews
  drop constraint reviews_partner_id_fkey,
  drop constraint reviews_account_id_fkey,
  drop constraint reviews_store_id_fkey;
alter table review_history
  drop constraint review_history_partner_id_fkey,
  drop constraint review_history_account_id_fkey,
  drop constraint review_history_store_id_fkey;
