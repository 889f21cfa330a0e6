import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { markedThrough } from "../../db/marks.ts";
import { outbox, outboxSequences } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { nullable, rows, statement, value, type ValuesOf } from "../../db/statement.ts";
import type { LoadRequest } from "../actor/event.ts";
import type { Entry } from "../actor/entry.ts";
import { MAX_QUEUED, MAX_TESTS } from "../actor/state.ts";
import { ENTRY_LINE, readEntry } from "./entry-line.ts";

// Every load of an actor runs it: it is SQL because it is measured (`bun run bench dispatch`), and shaped so that no state
// of the planner's statistics makes it read a table (`bun run bench plans`).

/** A row is the settings of a subscription, or one of its entries as a line. */
const LOADED = {
  ord: value("integer"),
  entry: nullable(value("text")),
  partnerId: nullable(webhookSubscriptions.partnerId),
  webhookUrl: nullable(webhookSubscriptions.webhookUrl),
  ordering: nullable(webhookSubscriptions.ordering),
  sealedSecret: nullable(webhookSubscriptions.sealedSecret),
  sealedPreviousSecret: webhookSubscriptions.sealedPreviousSecret,
  nextBatchAt: webhookSubscriptions.nextBatchAt,
  /** The last that was given out, of one that was taken over from a dead process; null of others. */
  lastSequence: nullable(outboxSequences.lastSequence),
};

type LoadedRow = ValuesOf<typeof LOADED>;
type NotNull<T> = { readonly [K in keyof T]: NonNullable<T[K]> };

/** A subscription that may be delivered to, as stored. */
export type SubscriptionRow = LoadedRow &
  NotNull<Pick<LoadedRow, "partnerId" | "webhookUrl" | "ordering" | "sealedSecret">>;

const TESTS_LIMIT = sql.raw(`${MAX_TESTS}`);
/** As many numbers of the sequence are read at once as an actor has room for. */
const PART = sql.raw(`${MAX_QUEUED}`);

/** The first number behind `after` that has an entry. */
const FIRST = (after: SQL): SQL => sql`
                       (select sequence from outbox where shard = a.shard and subscription_id = a.id and sequence > ${after}
                         order by sequence limit 1)`;

const load = statement({
  name: "load.active",
  reason: "Hot; walks the primary key in bounded parts, for each request of a table.",
  params: {
    given: rows({
      ord: value("integer"),
      id: outbox.subscriptionId,
      shard: outbox.shard,
      after: outbox.sequence,
      limit: value("integer"),
      except: value("integer[]"),
      except_none: value("boolean"),
      inherits: value("boolean"),
    }),
  },
  columns: LOADED,
  text: ({ given }) => sql`
    with asked as materialized (
      -- The condition holds for all: it has the planner expect one instead of a hundred, and so not compile the plan.
      select * from ${given} where ord >= 0 and ord < 1000000
    ), active as materialized (
      -- Of one moment with the entries: what an enable skips is left out.
      select a.*, s.*, ${markedThrough(sql`a.id`)} as marked,
             (select last_sequence from outbox_sequences where subscription_id = a.id and a.inherits) as last_sequence
        from asked a cross join lateral (
               select partner_id, webhook_url, ordering, sealed_secret, next_batch_at,
                      case when previous_secret_expires_at > now() then sealed_previous_secret end as previous_secret
                 from webhook_subscriptions where id = a.id and state = 'active' offset 0) s
    )
    select a.ord, ${sql.raw(ENTRY_LINE)} as entry,
           null::integer as "partnerId", null::text as "webhookUrl", null::text as ordering,
           null::text as "sealedSecret", null::text as "sealedPreviousSecret", null::timestamptz as "nextBatchAt",
           null::bigint as "lastSequence"
      from active a
     cross join lateral (
             (with recursive part as (
                select ${FIRST(sql`greatest(a.after, a.marked)`)} as first
                union all
                select ${FIRST(sql`p.first + ${PART} - 1`)} from part p where p.first is not null
              )
              select o.*
                from part p cross join lateral (
                       select * from outbox
                        where shard = a.shard and subscription_id = a.id
                          and sequence between p.first and p.first + ${PART} - 1 and not is_test
                          and (cardinality(a."except") = 0 or review_id is null or review_id <> all(a."except"))
                          and not (a.except_none and review_id is null)
                        order by sequence offset 0) o
               limit a."limit")
             union all
             (select * from outbox o
               where o.shard = a.shard and o.subscription_id = a.id and o.sequence > a.marked and o.is_test
               order by o.due_at nulls first, o.sequence limit ${TESTS_LIMIT})
           ) e
      left join lateral (select * from review_history where id = e.review_history_id offset 0) h on true
     union all
    select a.ord, null, a.partner_id, a.webhook_url, a.ordering, a.sealed_secret, a.previous_secret, a.next_batch_at,
           a.last_sequence
      from active a`,
});

export interface LoadedRows {
  readonly subscription: SubscriptionRow;
  /** In the order of the sequence. */
  readonly entries: readonly Entry[];
}

/**
 * Answers each request in its place, and undefined where the subscription is not active: its next entries, and the 16 of
 * its test events that are due first, all as they are at one moment, so that no entry that was skipped before comes with
 * settings from before. A previous secret is answered only while its grace period runs.
 *
 * It walks a queue by parts of its numbers, so that no plan can read more of it: without an end the planner, where it
 * expects a few rows, reads and sorts all that a subscription has queued, and an end that is a row does not end the walk
 * before PostgreSQL 18. What is looked up by a key is behind `offset 0`, because a plain join becomes a hash over all of
 * its table while the planner has no statistics.
 */
export async function loadActive(
  db: DbOrTx,
  requests: readonly LoadRequest[],
): Promise<(LoadedRows | undefined)[]> {
  const given = requests.map(({ id, shard, after, limit, exceptReviews, inherits }, ord) => ({
    ord,
    id,
    shard,
    after,
    limit,
    except: exceptReviews.filter((review) => review !== null),
    except_none: exceptReviews.includes(null),
    inherits,
  }));
  const found = Map.groupBy(await db.run(load, { given }), (row) => row.ord);
  return requests.map((_, ord) => {
    const own = found.get(ord) ?? [];
    const subscription = own.find(isSubscription);
    if (subscription === undefined) return undefined;
    const entries: Entry[] = [];
    for (const { entry } of own)
      if (entry !== null) entries.push(readEntry(entry, subscription.partnerId));
    return { subscription, entries: entries.toSorted((a, b) => a.sequence - b.sequence) };
  });
}

/** What no subscription lacks is null only where the row is an entry: the columns of the table say so. */
function isSubscription(row: LoadedRow): row is SubscriptionRow {
  return row.entry === null;
}
