-- Since when an axis of a store's review site is as it is: its last change. Only changes are in it, so other history pays nothing.
create index review_history_axis on review_history (store_review_site_id, axis, id)
  where event in ('review_pull_connected', 'review_pull_disconnected', 'response_post_connected',
                  'response_post_disconnected');
