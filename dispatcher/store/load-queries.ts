import { type SQL, sql } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { retryTime, walkedPast } from "../../db/log.ts";
import { bytesOf } from "../../db/measure.ts";
import { outbox, outboxOffsets, outboxSequences } from "../../db/schema/outbox.ts";
import { EVENT_JSON } from "../../db/schema/reviews.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { nullable, rows, statement, table, value, type ValuesOf } from "../../db/statement.ts";
import type { LoadRequest } from "../actor/event.ts";
import { FIRST_LOAD, MAX_TESTS } from "../actor/state.ts";
import { BETWEEN_RECORDS } from "./attempt-queries.ts";
import { nextByReview, nextOf, readEntry, type ReadEntry, WINDOW } from "./loaded-entries.ts";

const ms = (instant: string) => `(extract(epoch from ${instant}) * 1000)::bigint`;

/**
 * The fields of a text-encoded entry in the order of `readEntry`: for a row `e` of `outbox` with its history `h`, and
 * for an event `h` of the log. A test has no history, so its occurrence is the time of its request.
 */
const ENTRY_PARTS = [
  ["e.sequence", "h.sequence"],
  ["false", "true"],
  ["e.event_id", "h.event_id"],
  ["e.event", "h.event"],
  ["e.is_test", "false"],
  ["e.payload_mode = 'minimal'", "h.is_minimal"],
  ["e.review_id", "h.review_id"],
  ["e.batch_job_id", "''"],
  [ms("e.recorded_at"), ms("h.recorded_at")],
  ["e.round", "1"],
  ["e.attempt", "1"],
  [ms("e.due_at"), "''"],
  [ms("coalesce(e.occurred_at, e.recorded_at)"), ms("h.occurred_at")],
  ["''", "h.gap"],
  ["''", "h.previous"],
  ["e.account_id = any(a.inactive)", "h.account_id = any(a.inactive)"],
  ["e.bytes", "h.bytes"],
  ["e.part = 'due'", "false"],
  [
    "case when a.sequence_headers and e.subscription_number = a.number then e.logged_as - coalesce(e.unlogged, 0) end",
    "case when a.sequence_headers then h.sequence - coalesce(h.unlogged, 0) end",
  ],
] as const;
/**
 * The last of these fields: for a row of a later round, the number of the last event before it. Other entries have the
 * number of their own event for that.
 */
const NUMBER_BEFORE = `case when a.sequence_headers and e.round > 1 and e.subscription_number = a.number then (
       select h.sequence - coalesce(h.unlogged, 0) from review_history h
        where h.subscription_number = a.number and h.sequence < e.sequence order by h.sequence desc limit 1) end`;
/** JSON is read as the stored text, because it is copied into the body unchanged. */
const JSON_COLUMNS = ["actor", "review", "site", "metadata"];
/**
 * The last fields of a text-encoded entry, after the id of its `review_history` row. They are the same for entries of
 * `outbox` and of the log.
 */
const HISTORY_COLUMNS = ["store_id", "store_review_site_id", "axis", ...JSON_COLUMNS];

const line = (own: readonly string[], history: readonly string[]) =>
  `concat(${[...own, ...history].join(", chr(31), ")})`;
const rowLine = (numberBefore: string) =>
  line(
    [...ENTRY_PARTS.map(([ofRow]) => ofRow), numberBefore],
    ["e.history_id", ...HISTORY_COLUMNS.map((name) => `e.${name}`)],
  );
const LOG_LINE = line(
  [...ENTRY_PARTS.map(([, ofEvent]) => ofEvent), "''"],
  ["h.id", ...HISTORY_COLUMNS.map((name) => `h.${name}`)],
);
/** The bytes of the JSON of an event. */
const EVENT_BYTES = bytesOf("h", EVENT_JSON);

/**
 * Whether the entries before this one have fewer bytes in all than the load may return; `fitting` applies the same
 * rule.
 */
const FITS_LOAD = sql`coalesce(before, 0) < a.max_bytes`;
const ROWS_BEFORE = sql.raw("rows between unbounded preceding and 1 preceding");

// Raw SQL, because every load of an actor runs one of these statements (`bun run bench dispatch`). They are written so
// that no state of the statistics makes the planner scan a table (tests/integration/db/plans.test.ts).

/** The settings of a subscription and its place in the log, which every load reads. */
const STORED_COLUMNS = {
  partnerId: webhookSubscriptions.partnerId,
  webhookUrl: webhookSubscriptions.webhookUrl,
  ordering: webhookSubscriptions.ordering,
  standardWebhooks: webhookSubscriptions.standardWebhooks,
  settledLimit: nullable(value("bigint")),
  sealedSecret: webhookSubscriptions.sealedSecret,
  sealedPreviousSecret: webhookSubscriptions.sealedPreviousSecret,
  sealedHeaders: webhookSubscriptions.sealedHeaders,
  nextBatchAt: webhookSubscriptions.nextBatchAt,
  pendingTestEventId: webhookSubscriptions.pendingTestEventId,
  consecutiveFailureCount: webhookSubscriptions.consecutiveFailureCount,
  lastSequence: outboxSequences.lastSequence,
  lastLogged: outboxSequences.lastLogged,
  settledThrough: outboxOffsets.settledThrough,
  erasures: outboxOffsets.erasures,
  inactiveAccounts: value("text"),
};
/**
 * Selects the number before the first row of the first round that matches and is not settled; null if there is no such
 * row. For a row of an event that is missing, or that the log never had, it is the number of the last event before it.
 * The condition of the index `outbox_unsettled` is repeated literally.
 */
const beforeUnsettled = (matches: string) => `(
  select coalesce((select sequence - coalesce(unlogged, 0) - (sequence = o.sequence)::integer from review_history
                    where subscription_number = a.number and sequence <= o.sequence order by sequence desc limit 1), 0)
    from outbox o
   where o.subscription_id = a.id and ${matches} and o.sequence > a.skipped_through
     and not o.is_test and o.round = 1 and (o.skipped_at is null or o.is_held)
   order by o.sequence limit 1)`;
/**
 * Selects a number up to which no event of the log comes after the offset: the one before the first such event, less
 * the events before that one which may be missing.
 */
const BEFORE_LOGGED = `greatest(0, coalesce((
  select sequence - coalesce(unlogged, 0) - 1 - greatest(0, sequence - coalesce(gap, 0) - 1 - a.settled_through)
    from review_history where subscription_number = a.number and sequence > a.settled_through order by sequence limit 1),
  least(a.last_logged, a.settled_through) - a.unlogged))`;
const LAST_NUMBER = "a.last_logged - a.unlogged";
const HELD_LIMIT = beforeUnsettled("o.is_held");
/** The values of `Subscription.settledLimit` by the ordering; 0 is safe for a subscription with the other one. */
const SETTLED_LIMITS = {
  subscription: `case when a.ordering = 'subscription' then least(${HELD_LIMIT}, ${LAST_NUMBER}) else 0 end`,
  review: `case when a.ordering = 'review'
                then least(${HELD_LIMIT}, ${beforeUnsettled("not o.is_held")}, ${BEFORE_LOGGED}) else 0 end`,
} as const;
/** The expressions of these values over a row `a` with the columns of `FOUND_COLUMNS`. */
const STORED_EXPRESSIONS: Readonly<
  Record<Exclude<keyof typeof STORED_COLUMNS, "settledLimit">, string>
> = {
  partnerId: "a.partner_id",
  webhookUrl: "a.webhook_url",
  ordering: "a.ordering",
  standardWebhooks: "a.standard_webhooks",
  sealedSecret: "a.sealed_secret",
  sealedPreviousSecret: "a.previous_secret",
  sealedHeaders: "a.sealed_headers",
  nextBatchAt: "a.next_batch_at",
  pendingTestEventId: "a.pending_test_event_id",
  consecutiveFailureCount: "a.consecutive_failure_count",
  lastSequence: "a.last_sequence",
  lastLogged: "a.last_logged",
  settledThrough: "a.settled_through",
  erasures: "a.erasures",
  inactiveAccounts: "a.inactive::text",
};
const stored = (settledLimit: string, format: (name: string, column: string) => string) =>
  sql.raw(
    Object.entries({
      ...STORED_EXPRESSIONS,
      settledLimit: `case when a.sequence_headers then ${settledLimit} end`,
    })
      .map(([name, column]) => format(name, column))
      .join(", "),
  );

const SETTINGS_COLUMNS = {
  ...STORED_COLUMNS,
  /** The first due time after now of a queued entry; null with ordering by subscription. */
  nextDueAt: outbox.dueAt,
  /**
   * The last sequence number in the log after the offset, read only with ordering by review; null if the log has no
   * such event.
   */
  lastFound: nullable(outboxSequences.lastLogged),
  /** Whether loads with ordering by review walk past rows that they would not read after `postponeBehind`. */
  isBehind: value("boolean"),
};

/** The stored settings of a subscription that is active, or disabled with a pending test. */
export type SubscriptionRow = ValuesOf<typeof SETTINGS_COLUMNS>;

const TESTS_LIMIT = sql.raw(`${MAX_TESTS}`);

const NO_SETTINGS = sql`'[]'::json`;
/** The number of rows among which a load searches for those that it would not read after `postponeBehind`. */
const SEARCHED_ROWS = 16;
/** Whether something of a subscription is sent: it is active, or a test decides whether it becomes active. */
export const IS_SENT = sql.raw(
  "(state = 'active' or state = 'disabled' and pending_test_event_id is not null)",
);

const ASKED_COLUMNS = {
  ord: value("integer"),
  id: outbox.subscriptionId,
  shard: outbox.shard,
  after: outbox.sequence,
  limit: value("integer"),
  max_bytes: value("integer"),
};
const LOAD_PARAMS = {
  given: rows({ ...ASKED_COLUMNS, except: value("integer[]"), except_none: value("boolean") }),
};
// A row of the result has either the settings of a subscription or one encoded entry.
const LOAD_COLUMNS = {
  ord: value("integer"),
  entry: nullable(value("text")),
  settings: table(SETTINGS_COLUMNS),
};

/** The columns of a subscription that `SUBSCRIPTION_ROWS` looks up for a request `a`. */
const FOUND_COLUMNS = sql`
             s.*, f.settled_through, f.skipped_through, f.erasures, q.last_sequence, q.last_logged, q.unlogged,
             array(select id from companies where partner_id = s.partner_id and not is_active order by id) as inactive`;
const SUBSCRIPTION_ROWS = sql`
       cross join lateral (
               select number, partner_id, webhook_url, ordering, standard_webhooks, sequence_headers, sealed_secret,
                      sealed_headers,
                      consecutive_failure_count,
                      case when state = 'active' then next_batch_at end as next_batch_at,
                      case when state = 'disabled' then pending_test_event_id end as pending_test_event_id,
                      case when previous_secret_expires_at > now() then sealed_previous_secret end as previous_secret
                 from webhook_subscriptions where id = a.id and ${IS_SENT} offset 0) s
       cross join lateral (select * from outbox_offsets where subscription_id = a.id offset 0) f
       cross join lateral (select * from outbox_sequences where subscription_id = a.id offset 0) q`;

const loadLogged = statement({
  name: "load.logged",
  // Raw SQL, because most loads run this statement. Of `outbox` it only asks whether there is a row, because PostgreSQL
  // sets up every node of a plan for each execution: a load of one event takes 0.16 ms of CPU, and 0.28 ms by
  // `load.active` (2026-11).
  params: { given: rows(ASKED_COLUMNS) },
  columns: {
    ord: value("integer"),
    ...STORED_COLUMNS,
    /**
     * Whether the log has all entries of the subscription, none of them is held back by a test, and this statement can
     * number them.
     */
    isComplete: value("boolean"),
    entries: nullable(value("text")),
  },
  text: ({ given }) => sql`
    select a.ord, ${stored(LAST_NUMBER, (name, column) => `${column} as "${name}"`)}, a.is_complete as "isComplete",
           (select string_agg(${sql.raw(LOG_LINE)}, ${sql.raw(`chr(${BETWEEN_RECORDS.charCodeAt(0)})`)})
              from (select *, sum(bytes) over (order by sequence ${ROWS_BEFORE}) as before from (
                      select *, null as previous, ${EVENT_BYTES} as bytes
                        from review_history h
                       where subscription_number = a.number and sequence > greatest(a.after, a.settled_through)
                       order by sequence
                       limit case when a.is_complete and a.last_logged > greatest(a.after, a.settled_through) then a."limit" else 0 end) h) h
             where ${FITS_LOAD}) as entries
      from (select a.*, ${FOUND_COLUMNS},
                   s.pending_test_event_id is null
                   -- With lanes by review, numbers need look-ups, for which the other statement has the nodes.
                   and not (s.sequence_headers and s.ordering = 'review')
                   and (select true from outbox
                         where shard = a.shard and subscription_id = a.id and sequence > f.skipped_through limit 1) is null as is_complete
              from (select * from ${given}) a ${SUBSCRIPTION_ROWS}
            offset 0) a`,
});

/** The parts of a load statement that depend on the ordering. `queued` and `events` read entries for `a`. */
interface OfOrdering {
  readonly ordering: SubscriptionRow["ordering"];
  readonly queued: SQL;
  readonly previous: SQL;
  readonly events: SQL;
  readonly nextDueAt: SQL;
  readonly lastFound: SQL;
  readonly isBehind: SQL;
}

/**
 * Makes the text of a load statement. It reads entries of the subscriptions with this ordering, and tests and settings
 * of all. Everything is read in one snapshot, so that an entry which an enable skips is not returned with the settings
 * after the enable. Only with `isNumbered` does it look up what is settled, because PostgreSQL sets up these look-ups
 * for each execution, also if no subscription needs them.
 */
const textOf = (
  given: SQL,
  { ordering, queued, previous, events, nextDueAt, lastFound, isBehind }: OfOrdering,
  isNumbered: boolean,
) => sql`
    with asked as materialized (
      select * from ${given}
    ), active as materialized (
      select a.ord, a.id, a.shard, a.after, a.max_bytes, a."except", a.except_none, ${FOUND_COLUMNS},
             -- While a test is pending, all other entries are held.
             case when s.pending_test_event_id is null and s.ordering = ${sql.raw(`'${ordering}'`)} then a."limit" else 0 end as "limit"
        from asked a ${SUBSCRIPTION_ROWS}
    )
    select a.ord, ${sql.raw(rowLine(isNumbered ? NUMBER_BEFORE : "''"))} as entry, ${NO_SETTINGS} as settings
      from active a
     cross join lateral (
             select * from (
               select *, sum(bytes) over (partition by part order by place, sequence ${ROWS_BEFORE}) as before
                 from (
                   ${queued}
                   union all
                   (select *, 'test' as part, 0 as place from outbox o
                     where o.shard = a.shard and o.subscription_id = a.id and o.sequence > a.skipped_through and o.is_test
                       and o.skipped_at is null and o.event_id = coalesce(a.pending_test_event_id, o.event_id)
                     order by o.due_at nulls first, o.sequence limit ${TESTS_LIMIT})
                 ) o
                 left join lateral (
                   select id as history_id, ${sql.raw(HISTORY_COLUMNS.join(", "))}, occurred_at, account_id,
                          subscription_number, sequence as logged_as, unlogged, ${EVENT_BYTES} as bytes
                     from review_history h where id = o.review_history_id offset 0) h on true) e
              where is_test or ${FITS_LOAD}) e
     union all
    select a.ord, ${sql.raw(LOG_LINE)}, ${NO_SETTINGS}
      from active a
     cross join lateral (
             select * from (
               select *, sum(bytes) over (order by sequence ${ROWS_BEFORE}) as before from (
                 select *, ${EVENT_BYTES} as bytes from (
                   select *, ${previous} as previous
                     from review_history
                    where subscription_number = a.number and sequence > greatest(a.after, a.settled_through)
                    order by sequence limit case when a."limit" > 0 and a.last_logged > a.settled_through then ${sql.raw(`${WINDOW}`)} else 0 end) h
                  where ${events}
                  limit a."limit") h) h
              where ${FITS_LOAD}) h
     union all
    select a.ord, null,
           json_build_array(json_build_object(${stored(isNumbered ? SETTLED_LIMITS[ordering] : "0", (name, column) => `'${name}', ${column}`)}, 'nextDueAt', ${nextDueAt}, 'lastFound', ${lastFound}, 'isBehind', ${isBehind}))
      from active a`;

const BY_SUBSCRIPTION: OfOrdering = {
  ordering: "subscription",
  queued: sql`(select *, 'row' as part, 0 as place from outbox
                     where shard = a.shard and subscription_id = a.id and sequence > greatest(a.after, a.skipped_through)
                       and not is_test and skipped_at is null
                     order by sequence limit a."limit")`,
  // No event between the returned ones is left out, so `previous` is not needed, and a window function would copy
  // all of them.
  previous: sql`null`,
  events: sql`true`,
  nextDueAt: sql`null::timestamptz`,
  lastFound: sql`null::bigint`,
  isBehind: sql`false`,
};

const IS_QUEUED = sql`o.shard = a.shard and o.subscription_id = a.id and not o.is_test and o.skipped_at is null
                       and o.sequence > a.skipped_through`;
const isAsked = (one: string) => {
  const review = sql.raw(`${one}.review_id`);
  return sql`(cardinality(a."except") = 0 or ${review} is null or ${review} <> all(a."except"))
                       and not (a.except_none and ${review} is null)`;
};
/**
 * Whether no queued row of the review of `one` matches. The look-up is a scalar subquery, which the planner never turns
 * into a scan of all rows.
 */
const hasNone = (one: string, matches: SQL) => sql`
                       (select true from outbox w
                         where w.shard = a.shard and w.subscription_id = a.id
                           and coalesce(w.review_id, 0) = coalesce(${sql.raw(one)}.review_id, 0) and ${matches}
                           and w.sequence > a.skipped_through and not w.is_test and w.skipped_at is null
                         limit 1) is null`;

// Leaves out reviews that wait for a retry by look-ups in indexes, so that the cost of the statement does not follow
// the number of these reviews.
const BY_REVIEW: OfOrdering = {
  ordering: "review",
  // If a row of a review has waited and is due, only the first row of the review is read. If no row of it waits or has
  // waited, all are read. A row waits or has waited if it has `due_at` or `behind_until`; other rows of its review may
  // have neither.
  queued: sql`(select *, 'due' as part, extract(epoch from ${retryTime("o")}) as place from outbox o
                     where ${IS_QUEUED} and ${retryTime("o")} <= now() and ${isAsked("o")}
                       and ${hasNone("o", sql`w.sequence < o.sequence`)}
                     order by ${retryTime("o")}, sequence limit a."limit")
                   union all
                   (select *, 'row' as part, 0 as place from outbox o
                     where ${IS_QUEUED} and ${retryTime("o")} is null and ${isAsked("o")}
                       and ${hasNone("o", sql`w.sequence < o.sequence and ${retryTime("w")} is not null`)}
                     order by ${retryTime("o")}, sequence limit a."limit")`,
  previous: sql`lag(sequence, 1, greatest(a.after, a.settled_through)) over (order by sequence)`,
  events: sql`${isAsked("h")} and ${hasNone("h", sql`${retryTime("w")} is not null`)} or sequence - coalesce(gap, 0) - 1 > previous`,
  nextDueAt: sql`(select ${retryTime("o")} from outbox o where ${IS_QUEUED} and ${retryTime("o")} > now()
                        order by ${retryTime("o")} limit 1)`,
  lastFound: sql`(select sequence from review_history where subscription_number = a.number and sequence > a.settled_through
                          order by sequence desc limit 1)`,
  isBehind: sql`(a."limit" > 0 and exists (${walkedPast(
    {
      shard: sql`a.shard`,
      id: sql`a.id`,
      offset: sql`a`,
      isAsked: isAsked("o"),
    },
    SEARCHED_ROWS,
  )}))`,
};

const loadStatement = (name: string, of: OfOrdering, isNumbered = false) =>
  statement({
    name,
    // Raw SQL, because the statement is hot and makes bounded walks of the log and of `outbox` for each request of a
    // table.
    params: LOAD_PARAMS,
    columns: LOAD_COLUMNS,
    text: ({ given }) => textOf(given, of, isNumbered),
  });

const LOADS = {
  subscription: loadStatement("load.active", BY_SUBSCRIPTION),
  review: loadStatement("load.byReview", BY_REVIEW),
  numberedSubscription: loadStatement("load.activeNumbered", BY_SUBSCRIPTION, true),
  numberedReview: loadStatement("load.byReviewNumbered", BY_REVIEW, true),
} as const;
type Kind = keyof typeof LOADS;
const KINDS = ["subscription", "review", "numberedSubscription", "numberedReview"] as const;

/** Returns which statement reads a subscription with these settings. */
function kindOf({ ordering, isNumbered }: Pick<LoadRequest, "ordering" | "isNumbered">): Kind {
  if (ordering === "review") return isNumbered ? "numberedReview" : "review";
  return isNumbered ? "numberedSubscription" : "subscription";
}
const kindOfRow = ({ ordering, settledLimit }: SubscriptionRow): Kind =>
  kindOf({ ordering, isNumbered: settledLimit !== null });

type LoadResults = Awaited<ReturnType<typeof loadOf>>;
export type LoadedRows = NonNullable<LoadResults[number]>;

/**
 * Returns a result for each request in the same order, and undefined if the subscription is not active: its next
 * entries, and the 16 tests that are due first. For a disabled subscription with a pending test, only this test is
 * returned. Everything in a result comes from one snapshot, so that no skipped entry is combined with later settings. A
 * previous secret is returned only during its grace period.
 *
 * Usually the log alone has the entries of a subscription. `load.logged` checks that and reads them. It is used only
 * for the few entries of a first load, because it takes more time per entry. Otherwise the statement of the
 * subscription's kind reads everything: of its ordering, with or without numbers. If that statement finds a subscription
 * of another kind, the other statement reads the request again.
 *
 * Look-ups by a key are behind `offset 0`, because the planner without statistics turns a plain join into a hash over
 * the whole table.
 */
export async function loadActive(db: DbOrTx, requests: readonly LoadRequest[]) {
  const results = new Map<LoadRequest, LoadResults[number]>();
  const left = new Map<LoadRequest, Kind>();
  const readAll = async (kind: Kind) => {
    const group = [...left].filter(([, one]) => one === kind).map(([request]) => request);
    const found = group.length === 0 ? [] : await loadOf(db, kind, group);
    group.forEach((request, i) => {
      const row = found[i];
      left.delete(request);
      results.set(request, row);
      const present = row === undefined ? kind : kindOfRow(row.subscription);
      if (present !== kind) left.set(request, present);
    });
  };
  const { first = [], later = [] } = Object.groupBy(requests, ({ exceptReviews, limit }) =>
    exceptReviews.length === 0 && limit <= FIRST_LOAD ? "first" : "later",
  );
  for (const request of later) left.set(request, kindOf(request));
  const logged = first.length === 0 ? [] : await loadFromLog(db, first);
  first.forEach((request, i) => {
    const found = logged[i];
    if (found?.isComplete === false) left.set(request, kindOfRow(found.subscription));
    else results.set(request, found);
  });
  for (const kind of [...KINDS, ...KINDS]) await readAll(kind);
  return requests.map((request) => results.get(request));
}

/** Reads settings and the entries of the log. If `isComplete` is true, the subscription has no other entries. */
async function loadFromLog(db: DbOrTx, requests: readonly LoadRequest[]) {
  const given = requests.map(askedOf);
  const found = new Map((await db.run(loadLogged, { given })).map((row) => [row.ord, row]));
  return requests.map((request, ord) => {
    const row = found.get(ord);
    if (row === undefined) return undefined;
    const { entries: text, isComplete, ord: _, ...settings } = row;
    const entries = (text?.split(BETWEEN_RECORDS) ?? []).map((one) =>
      readEntry(one, settings.partnerId),
    );
    const subscription = { ...settings, nextDueAt: null, lastFound: null, isBehind: false };
    // `nextOf` fits both orderings here: no review is left out and none waits, so both have the same entries.
    return { isComplete, subscription, ...nextOf(entries, request, subscription) };
  });
}

function askedOf({ id, shard, after, limit, maxBytes }: LoadRequest, ord: number) {
  return { ord, id, shard, after, limit, max_bytes: maxBytes };
}

/** Reads settings, the entries of the subscriptions with the ordering of this kind, and tests. */
async function loadOf(db: DbOrTx, kind: Kind, requests: readonly LoadRequest[]) {
  const ordering = kind === "review" || kind === "numberedReview" ? "review" : "subscription";
  const given = requests.map((request, ord) => ({
    ...askedOf(request, ord),
    except: request.exceptReviews.filter((review) => review !== null),
    except_none: request.exceptReviews.includes(null),
  }));
  const answered = await db.run(LOADS[kind], { given });
  const found = Map.groupBy(answered, (row) => row.ord);
  return requests.map((request, ord) => {
    const own = found.get(ord) ?? [];
    const [subscription] = own.flatMap(({ settings }) => settings);
    if (subscription === undefined) return undefined;
    const entries: ReadEntry[] = [];
    for (const { entry } of own)
      if (entry !== null) entries.push(readEntry(entry, subscription.partnerId));
    const isRead = subscription.pendingTestEventId === null && subscription.ordering === ordering;
    const asked = { ...request, limit: isRead ? request.limit : 0 };
    const next = ordering === "review" ? nextByReview : nextOf;
    return { subscription, ...next(entries, asked, subscription) };
  });
}
