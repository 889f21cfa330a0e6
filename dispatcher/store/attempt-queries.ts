import { types } from "node:util";
import { getTableColumns, sql, type SQL } from "drizzle-orm";

import { LOGGED_COLUMNS, LOGGED_VALUES } from "../../db/log.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, list, statement, value, valueOf, type ValuesOf } from "../../db/statement.ts";
import { type Decision, DISABLE_AFTER_FAILURES } from "../actor/decide.ts";

/*
 * Text-encoded rows. Hot statements pass rows to and from PostgreSQL as text: the driver then encodes or decodes one
 * text per row, or per statement, instead of one value per column. An empty field is null.
 */

/** No value contains these separators: text of receivers is cleaned of them, and JSON escapes them. */
export const BETWEEN_RECORDS = "\x1e";
export const BETWEEN_FIELDS = "\x1f";

/**
 * Every field of an attempt record with its column: the written ones and those that identify the entry. The statements
 * number them in this order.
 */
const ATTEMPT_FIELDS = {
  shard: outbox.shard,
  /**
   * True if the entry was read from the log, so that its record moves the offset, unless the offset has passed the
   * entry already.
   */
  isLogged: value("boolean"),
  ...getTableColumns(deliveryAttempts),
};

type Decided = "outcome" | "nextAttemptAt";
/**
 * Columns of bytes. An attempt record holds their hex digits, because the values are made as hex digits and passed to
 * PostgreSQL as hex digits.
 */
type HexField = "signature" | "previousSignature" | "bodyDigest" | "standardSignatures";

/** An attempt record: one POST and the decision about its entry, with all values that a commit writes about them. */
export interface AttemptRecord
  extends
    Omit<ValuesOf<typeof ATTEMPT_FIELDS>, Decided | HexField>,
    Readonly<Record<HexField, string | null>> {
  readonly decision: Decision;
  /** The end of the POST by the monotonic clock of the process. The delay of a retry counts from it. */
  readonly endedMs: number;
  /** The number of erasures that the load of the entry has seen (`outbox_offsets.erasures`). */
  readonly erasures: number;
}

type Field = keyof typeof ATTEMPT_FIELDS;
// Object.keys has no type for the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const FIELDS = Object.keys(ATTEMPT_FIELDS) as Field[];

/** Encodes records as one text; `nowMs` is the present time of the monotonic clock. */
export function encodeRecords(records: readonly AttemptRecord[], nowMs: number): string {
  const encode = (record: AttemptRecord) =>
    FIELDS.map((field) => textOf(record, field, nowMs)).join(BETWEEN_FIELDS);
  return records.map(encode).join(BETWEEN_RECORDS);
}

function textOf(record: AttemptRecord, field: Field, nowMs: number): string {
  const { decision, endedMs } = record;
  if (field === "outcome") return decision.kind;
  if (field === "nextAttemptAt")
    return decision.kind === "retry" ? `${endedMs + decision.delayMs - nowMs}` : "";
  const held = record[field];
  if (field === "responseExcerpt") return storable(record.responseExcerpt ?? "");
  if (held === null) return "";
  if (typeof held !== "object") return `${held}`;
  return types.isDate(held) ? held.toISOString() : JSON.stringify(held);
}

const UNSTORABLE = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * Replaces NUL, unpaired surrogates and our separators in text of a receiver, because PostgreSQL text cannot hold the
 * first two. In JSON all of these are escaped already.
 */
function storable(text: string): string {
  return text.replaceAll(UNSTORABLE, "\uFFFD").toWellFormed();
}

// The commit of attempts is the hottest statement (`bun run bench dispatch`), so it is raw SQL: one statement for the
// records of many actors, which it gets as one text.

/**
 * Fields that belong to the entry and not to the attempt: those that locate the entry, and those that are copied to
 * the attempt.
 */
const PLACE: ReadonlySet<Field> = new Set(["shard", "isLogged"]);
const ENTRY: ReadonlySet<Field> = new Set(["payloadMode", "batchJobId", "recordedAt"]);
/** Fields whose content the receiver has chosen, so that they may repeat the body. */
const RESPONSE: ReadonlySet<Field> = new Set(["responseHeaders", "responseExcerpt"]);

function nameOf(field: Field): string {
  return valueOf(ATTEMPT_FIELDS[field]).column?.name ?? "is_logged";
}

/**
 * Decodes the fields of an attempt record into columns. The clock of PostgreSQL determines the due time of a retry:
 * the record has the ms until then, so a wrong clock of one process neither blocks an entry nor sends it early.
 */
const NUMBERED = sql.raw(
  FIELDS.map((field, i) => {
    const text = `f[${i + 1}]`;
    const type = valueOf(ATTEMPT_FIELDS[field]).type;
    const plain = type === "bytea" ? `decode(${text}, 'hex')` : `${text}::${type}`;
    const delayed = `now() + ${text}::double precision * interval '1 millisecond'`;
    return `${field === "nextAttemptAt" ? delayed : plain} as ${nameOf(field)}`;
  }).join(", "),
);

const written = FIELDS.filter((field) => !PLACE.has(field));
const WRITTEN = sql.raw(written.map(nameOf).join(", "));
type Wrap = (column: string) => string;
/**
 * Selects the values of an attempt row. `settles` wraps the columns that only an attempt that settles its entry has, and
 * `keeps` those of the response.
 */
const selected = (settles: Wrap, keeps: Wrap) =>
  sql.raw(
    written
      .map((field) => {
        const name = `i.${nameOf(field)}`;
        if (ENTRY.has(field)) return settles(name);
        // A response without a body has an empty excerpt; without a response the excerpt is null.
        const isExcerpt = field === "responseExcerpt";
        const column = isExcerpt
          ? `coalesce(${name}, case when i.status_code is not null then '' end)`
          : name;
        return RESPONSE.has(field) ? keeps(column) : column;
      })
      .join(", "),
  );
/**
 * Whether the event of a record was not erased since it was read: its row is there and has no mark. Tests have neither
 * (`payload_format` is null). The look-up is a scalar subquery, which the planner never turns into a scan of all events,
 * and runs only if something of the partner was erased meanwhile.
 */
const IS_KEPT = `(f.read_erasures = f.erasures or coalesce(
  (select h.erased_at is null from review_history h where h.event_id = i.event_id), i.payload_format is null))`;
const SELECTED = selected(
  (column) => `case when e.sequence is not null then ${column} end`,
  (column) => `case when ${IS_KEPT} then ${column} end`,
);
const RUN = selected(
  (column) => column,
  (column) => column,
);

/** Whether a run of failures reaches the 20th failure, even if a success follows. */
const REACHED = sql`
    (w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES} or r.longest >= ${DISABLE_AFTER_FAILURES})`;

/** Whether the outcome of a pending test enables the subscription (contract 6.16). */
const ENABLES = sql`i.outcome = 'delivered'`;

/**
 * Writes the `outbox` rows that wait for their next attempt, counts the runs of failures with their consequences, and
 * applies the outcome of a pending test.
 */
function waitAndCount(now: SQL): SQL {
  return sql`
    waiting as (
      update outbox o set state = 'waiting', attempt = i.attempt + 1, due_at = i.next_attempt_at
        from rows i
       where i.outcome = 'retry' and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt and o.skipped_at is null
    ), placed as (
      -- A run of failures ends at the next success, so the successes up to each record are counted.
      select i.subscription_id, i.outcome,
             count(*) filter (where i.outcome = 'delivered') over (partition by i.subscription_id order by i.ord) as run
        from input i
        join ended e on e.subscription_id = i.subscription_id and e.sequence = i.sequence
                    and i.outcome in ('delivered', 'failed')
    ), counts as (
      select subscription_id, run, count(*) filter (where outcome = 'failed') as failures
        from placed group by subscription_id, run
    ), runs as (
      -- Failures before the first success continue the stored run; every other run starts at zero.
      select subscription_id, max(run) > 0 as succeeded,
             coalesce(max(failures) filter (where run = 0), 0) as leading,
             coalesce(max(failures) filter (where run > 0), 0) as longest,
             (array_agg(failures order by run desc))[1] as trailing
        from counts group by subscription_id
    ), counted as (
      -- The rule reads w only, because an enable may have committed since, and w is the present row.
      update webhook_subscriptions w
         set consecutive_failure_count = case
               when ${REACHED} then ${DISABLE_AFTER_FAILURES}
               when r.succeeded then r.trailing
               else w.consecutive_failure_count + r.leading end,
             state = case when ${REACHED} then 'disabled' else 'active' end,
             disabled_at = case when ${REACHED} then ${now}::timestamptz end,
             disabled_reason = case when ${REACHED} then 'consecutive_failures' end,
             updated_at = case when ${REACHED} then ${now}::timestamptz else w.updated_at end
        from runs r
       where w.id = r.subscription_id and w.state = 'active'
         and (r.leading > 0 or r.longest > 0 or w.consecutive_failure_count > 0)
      returning w.id, w.state
    ), tested as (
      -- The outcome of a pending test enables the subscription, or leaves it disabled. Another test may be pending by
      -- now, and w is the present row.
      update webhook_subscriptions w
         set pending_test_event_id = null, updated_at = ${now}::timestamptz,
             state = case when ${ENABLES} then 'active' else 'disabled' end,
             consecutive_failure_count = case when ${ENABLES} then 0 else w.consecutive_failure_count end,
             disabled_at = case when not ${ENABLES} then w.disabled_at end,
             disabled_reason = case when not ${ENABLES} then w.disabled_reason end,
             disabled_note = case when not ${ENABLES} then w.disabled_note end
        from input i join ended e on e.subscription_id = i.subscription_id and e.sequence = i.sequence
       where w.id = i.subscription_id and w.state = 'disabled' and w.pending_test_event_id = i.event_id
         and i.outcome in ('delivered', 'failed')
    )`;
}

/** Locks the lease of the process, so that no other process expires it meanwhile, and decodes the records. */
const recordsOf = ({ dispatcherId, lines }: Readonly<Record<"dispatcherId" | "lines", SQL>>) => sql`
    with lease as materialized (
      -- The limit applies to this statement only. A group that waits longer for a row is split (committer.ts).
      select id from dispatchers
       where id = ${dispatcherId} and set_config('lock_timeout', '100ms', true) is not null
         for key share
    ), lines as materialized (
      select string_to_array(line, chr(31), '') as f, ord
        from lease, string_to_table(${lines}, chr(30)) with ordinality as t(line, ord)
    ), input as not materialized (
      select ord, ${NUMBERED}
        from lines
    )`;

/** Returns the ids of the subscriptions that match, as one array. */
const idsWhere = (holds: SQL) => sql`array(select id from subscriptions where ${holds})`;

/** `erasures` has the number of erasures that the records of each subscription have in common. */
const GIVEN = {
  dispatcherId: dispatchers.id,
  lines: value("text"),
  subscriptionIds: value("text"),
  erasures: value("text"),
};
const ANSWER = {
  held: value("integer"),
  disabled: list(webhookSubscriptions.id),
  inactive: list(webhookSubscriptions.id),
  left: list(webhookSubscriptions.id),
};

/**
 * Commits the attempt records of successes of consecutive log entries: those from `firsts` to `lasts` of each
 * subscription.
 */
export const commitRuns = statement({
  name: "attempts.commitRuns",
  // The hottest statement of all. Attempts as one JSON parameter reach 87,000 per second, in groups of 100 with an
  // update per row 37,000, and one by one 1,200.
  params: { ...GIVEN, firsts: value("text"), lasts: value("text") },
  columns: ANSWER,
  text: (given) => sql`${recordsOf(given)},
    runs as materialized (
      select t.id, t.first::bigint, t.last::bigint, t.erasures::integer
        from lease, unnest(string_to_array(${given.subscriptionIds}, chr(30)), string_to_array(${given.firsts}, chr(30)),
                           string_to_array(${given.lasts}, chr(30)), string_to_array(${given.erasures}, chr(30)))
                    as t(id, first, last, erasures)
    ), subscriptions as materialized (
      select s.*
        from runs r cross join lateral (
               select id, state, consecutive_failure_count from webhook_subscriptions where id = r.id offset 0) s
    ), advanced as (
      -- The condition fails if a skip has moved the offset, if something of the partner was erased since the load, or if
      -- this commit was applied before and its response was lost.
      update outbox_offsets f set settled_through = r.last
        from runs r
       where f.subscription_id = r.id and f.settled_through = r.first - 1 and f.erasures = r.erasures
      returning f.subscription_id
    ), attempts as (
      insert into delivery_attempts (${WRITTEN})
      select ${RUN} from input i join advanced a on a.subscription_id = i.subscription_id
    ), counted as (
      -- Ends a run of failures from before.
      update webhook_subscriptions w set consecutive_failure_count = 0
        from subscriptions s
       where s.consecutive_failure_count > 0 and w.id = s.id and w.state = 'active'
         and w.id in (select subscription_id from advanced)
    )
    select (select count(*)::int from lease) as held, ${idsWhere(sql`state <> 'active'`)} as inactive,
           array[]::text[] as disabled, ${idsWhere(sql`id not in (select subscription_id from advanced)`)} as left`,
});

/**
 * Inserts `outbox` rows for unsettled entries that the offset passes: retries, and entries of other reviews that are
 * under way.
 */
const PASSED = sql`
    passed as (
      insert into outbox (${LOGGED_COLUMNS}, attempt, state, due_at)
      select ${LOGGED_VALUES}, coalesce(m.attempt + 1, 1), case when m.outcome is null then 'pending' else 'waiting' end,
             m.next_attempt_at
        from ahead a
        join subscriptions s on s.id = a.subscription_id
       cross join lateral (
               select * from review_history
                where subscription_number = a.number and sequence > a.settled_through and sequence <= a.last offset 0) h
        left join moved m on m.subscription_id = a.subscription_id and m.sequence = h.sequence
       where a.last - a.settled_through > a.ended and coalesce(m.outcome, 'retry') = 'retry'
    )`;

/**
 * Takes events of the log out of the skips that cover them, because their POSTs were under way at the skip and ended well:
 * what was delivered is not skipped (contract 6.16). The range of a skip is split before and after each of them. The last
 * part keeps the row, and may be empty.
 */
const UNSKIPPED = sql`
    unskipped as materialized (
      select i.subscription_id, i.sequence, k.first, k.last, k.reason, k.entries, k.skipped_at
        from input i join offsets f on f.subscription_id = i.subscription_id
       cross join lateral (
               select * from outbox_skips where subscription_id = i.subscription_id and last >= i.sequence
                order by last limit 1) k
       where i.outcome = 'delivered' and i.is_logged and i.sequence <= f.skipped_through and i.sequence >= k.first
    ), before_it as (
      insert into outbox_skips (subscription_id, first, last, reason, entries, skipped_at)
      select subscription_id, begin, sequence - 1, reason, case when entries is not null then 0 end, skipped_at
        from (select *, coalesce(lag(sequence) over (partition by subscription_id, last order by sequence) + 1, first) as begin
                from unskipped) u
       where begin < sequence
    ), after_it as (
      update outbox_skips k set first = u.sequence + 1, entries = k.entries - u.count
        from (select subscription_id, last, max(sequence) as sequence, count(*)::int as count
                from unskipped group by subscription_id, last) u
       where k.subscription_id = u.subscription_id and k.last = u.last
    )`;

/**
 * Commits attempt records of any kind, with each entry at most once, and those of a subscription with one number of
 * erasures.
 */
export const commitAny = statement({
  name: "attempts.commit",
  // Raw SQL for the reason of `attempts.commitRuns`.
  params: { ...GIVEN, now: instant },
  columns: ANSWER,
  text: (given) => sql`${recordsOf(given)}, subscriptions as materialized (
      select s.*, f.*, given.erasures::integer as read_erasures
        from unnest(string_to_array(${given.subscriptionIds}, chr(30)), string_to_array(${given.erasures}, chr(30)))
               as given(id, erasures) cross join lateral (
               select id, number, shard, state, consecutive_failure_count from webhook_subscriptions
                where id = given.id offset 0) s
       cross join lateral (
               select settled_through as seen_settled, skipped_through as seen_skipped, erasures as seen_erasures
                 from outbox_offsets where subscription_id = given.id offset 0) f
    ), offsets as materialized (
      -- Locked until the commit. A subscription that has moved since the statement began may have rows or erased events
      -- which it does not see, so it is left for the next statement.
      select s.number, s.read_erasures, f.*
        from lease, subscriptions s cross join lateral (
               select * from outbox_offsets where subscription_id = s.id for no key update) f
       where f.settled_through = s.seen_settled and f.skipped_through = s.seen_skipped
         and f.erasures = s.seen_erasures
    ), moved as materialized (
      select i.subscription_id, i.sequence, i.outcome, i.attempt, i.next_attempt_at
        from input i join offsets f on f.subscription_id = i.subscription_id
       where i.is_logged and i.sequence > f.settled_through and i.outcome <> 'interrupted'
    ), ahead as materialized (
      select f.*, m.last, m.ended
        from offsets f join (
             select subscription_id, max(sequence) as last, count(*) filter (where outcome <> 'retry') as ended
               from moved group by subscription_id) m on m.subscription_id = f.subscription_id
    ), advanced as (
      update outbox_offsets f set settled_through = a.last from ahead a where f.subscription_id = a.subscription_id
    ), ${PASSED}, rows as not materialized (
      select i.* from input i join offsets f on f.subscription_id = i.subscription_id
       where (i.sequence > f.skipped_through or i.outcome = 'delivered')
         and not (i.is_logged and i.sequence > f.settled_through)
    ), removed as (
      -- By the key and not by the place, because a row that another statement changes meanwhile gets a new place.
      delete from outbox o using rows i
       where i.outcome in ('delivered', 'failed') and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt and (o.skipped_at is null or i.outcome = 'delivered')
      returning o.subscription_id, o.sequence
    ), ${UNSKIPPED}, ended as materialized (
      select subscription_id, sequence from removed
       union all
      select subscription_id, sequence from moved where outcome <> 'retry'
       union all
      select subscription_id, sequence from unskipped
    ), attempts as (
      insert into delivery_attempts (${WRITTEN})
      select ${SELECTED}
        from input i
        join offsets f on f.subscription_id = i.subscription_id
        left join ended e on e.subscription_id = i.subscription_id and e.sequence = i.sequence
                         and i.outcome in ('delivered', 'failed')
      on conflict do nothing
    ), ${waitAndCount(given.now)}
    select (select count(*)::int from lease) as held,
           array(select id from counted where state = 'disabled') as disabled,
           ${idsWhere(sql`state <> 'active'`)} as inactive,
           ${idsWhere(sql`id not in (select subscription_id from offsets)`)} as left`,
});
