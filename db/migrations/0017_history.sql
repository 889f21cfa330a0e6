-- History may be removed, once nothing that is made from it is left (upkeep.removeOldHistory). To prove that by these
-- constraints would walk over the outbox for each row that goes, or cost each entry an index; and each new entry had to
-- lock its row of the history, which the same statement has written.
alter table outbox drop constraint outbox_review_history_id_fkey;
alter table batch_entries drop constraint batch_entries_review_history_id_fkey;
