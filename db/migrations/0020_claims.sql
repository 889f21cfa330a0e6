-- A claim takes its provider from review_sites in its own statement, and the history of a review refers to the review,
-- which refers to the connection; a connection, like a provider, is never removed. To prove it anew, each event locked the
-- row of its provider, the same for all events of all processes, and the row of its connection a second time.
alter table provider_events drop constraint provider_events_review_site_id_fkey;
alter table review_history drop constraint review_history_store_review_site_id_fkey;
