// Raw: it writes rows that never are, which the query builder has no words for.
import type { RawDb } from "./client.ts";

/*
 * Statements are planned for the pages that a table has at that moment, and the plan is kept. Of a table with a few
 * pages all are read, because that is cheaper than an index: and a moment later a backlog of a million stands in it. So
 * the tables that grow like that begin with more pages than a look-up costs, and never give any back. An insert that is
 * undone leaves its pages.
 */

const PAGES = 128;
const PAGE_BYTES = 8_192;

/** By table, the rows that fill the pages. None of them can be valid, and no lock is held on what they refer to. */
const ROWS: Readonly<Record<string, string>> = {
  outbox: `insert into outbox (shard, subscription_id, sequence, event_id, event, is_test, payload_mode, recorded_at)
    select -1, '', n, '', repeat('x', 1500), true, 'full', now() from generate_series(1, ${PAGES * 5}) n`,
  batch_entries: `insert into batch_entries (subscription_id, review_history_id)
    select repeat('x', 1000), -n from generate_series(1, ${PAGES * 7}) n`,
  outbox_sequences: `insert into outbox_sequences (subscription_id)
    select repeat('x', 1000) || n from generate_series(1, ${PAGES * 7}) n`,
  webhook_subscriptions: `insert into webhook_subscriptions (id, partner_id, shard, label, webhook_url, delivery_kind,
      payload_mode, suppress_native_notifications, ordering, state, sealed_secret, secret_fingerprint, created_at, updated_at)
    select n, -n, 0, '', repeat('x', 1500), 'immediate', 'full', false, 'review', 'deleted', '', '', now(), now()
      from generate_series(1, ${PAGES * 5}) n`,
  review_history: `insert into review_history (id, event_id, partner_id, account_id, store_id, store_review_site_id, event,
      actor, review, metadata, occurred_at, recorded_at) overriding system value
    select -n, n, -1, -1, -1, -1, repeat('x', 1500), '{}', '{}', '{}', now(), now()
      from generate_series(1, ${PAGES * 5}) n`,
};

/** Gives each of them its first pages, if it has fewer: after the migrations, or where a dump was restored. */
export async function ensurePages({ sql }: Pick<RawDb, "sql">): Promise<void> {
  for (const [table, rows] of Object.entries(ROWS))
    await sql.unsafe(`
      do $$ begin
        if pg_relation_size('${table}') < ${PAGES * PAGE_BYTES} then
          ${rows};
          raise exception 'undone';
        end if;
      exception when others then null;
      end $$`);
}
