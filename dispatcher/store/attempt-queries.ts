import { types } from "node:util";
import { getTableColumns, sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { LOGGED_COLUMNS, LOGGED_VALUES } from "../../db/log.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import {
  instant,
  list,
  onlyRow,
  statement,
  value,
  valueOf,
  type ValuesOf,
} from "../../db/statement.ts";
import { type Decision, DISABLE_AFTER_FAILURES } from "../actor/decide.ts";

/*
 * Text-encoded rows. Hot statements pass rows to and from PostgreSQL as text: the driver then encodes or decodes one
 * text per row, or per statement, instead of one value per column. An empty field is null.
 */

/** No value contains these separators: `storable` replaces them in text of receivers, and JSON escapes them. */
export const BETWEEN_RECORDS = "\x1e";
export const BETWEEN_FIELDS = "\x1f";

/**
 * Every field of an attempt record with its column: the fields that are written and those that identify the entry. The
 * statements number them in this order.
 */
const ATTEMPT_FIELDS = {
  shard: outbox.shard,
  /**
   * True if the entry was read from the log, so that its attempt record moves the offset, unless the offset has passed
   * the entry already.
   */
  isLogged: value("boolean"),
  ...getTableColumns(deliveryAttempts),
};

type DecidedField = "outcome" | "nextAttemptAt";
/**
 * Columns of bytes. An attempt record holds their hex digits, because the values are made as hex digits and passed to
 * PostgreSQL as hex digits.
 */
type HexField = "signature" | "previousSignature" | "bodyDigest" | "standardSignatures";

/** An attempt record: one POST and the decision about its entry, with all values that a commit writes about them. */
export interface AttemptRecord
  extends
    Omit<ValuesOf<typeof ATTEMPT_FIELDS>, DecidedField | HexField>,
    Readonly<Record<HexField, string | null>> {
  readonly decision: Decision;
  /** The end of the POST by the monotonic clock of the process. The delay of a retry counts from it. */
  readonly endedMs: number;
  /** The number of erasures that the load of the entry has seen (`outbox_offsets.erasures`). */
  readonly erasures: number;
}

type RecordField = keyof typeof ATTEMPT_FIELDS;
// Object.keys has no type for the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const FIELD_NAMES = Object.keys(ATTEMPT_FIELDS) as RecordField[];

/** Encodes attempt records as one text; `nowMs` is the present time of the monotonic clock. */
function encodeRecords(records: readonly AttemptRecord[], nowMs: number): string {
  const encode = (record: AttemptRecord) =>
    FIELD_NAMES.map((field) => textOf(record, field, nowMs)).join(BETWEEN_FIELDS);
  return records.map(encode).join(BETWEEN_RECORDS);
}

function textOf(record: AttemptRecord, field: RecordField, nowMs: number): string {
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

const UNSTORABLE_CHARS = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * Replaces NUL, unpaired surrogates and our separators in text of a receiver, because PostgreSQL text cannot hold the
 * first two. In JSON all of these characters are escaped already.
 */
function storable(text: string): string {
  return text.replaceAll(UNSTORABLE_CHARS, "\uFFFD").toWellFormed();
}

// The commit of attempts is the hottest statement (`bun run bench dispatch`), so it is raw SQL: one statement for the
// attempt records of many actors, which are passed as one text.

/**
 * Fields that belong to the entry and not to the attempt: those that locate the entry (`PLACE_FIELDS`), and those that
 * are copied to the attempt (`ENTRY_FIELDS`).
 */
const PLACE_FIELDS: ReadonlySet<RecordField> = new Set(["shard", "isLogged"]);
const ENTRY_FIELDS: ReadonlySet<RecordField> = new Set(["payloadMode", "batchJobId", "recordedAt"]);
/** Fields whose content the receiver has chosen, so that they may repeat the body. */
const RESPONSE_FIELDS: ReadonlySet<RecordField> = new Set(["responseHeaders", "responseExcerpt"]);

function nameOf(field: RecordField): string {
  return valueOf(ATTEMPT_FIELDS[field]).column?.name ?? "is_logged";
}

/**
 * Decodes the fields of an attempt record into columns. The clock of PostgreSQL determines the due time of a retry: the
 * attempt record has the ms until then, so a wrong clock of one process neither blocks an entry nor sends it early.
 */
const DECODED_FIELDS = sql.raw(
  FIELD_NAMES.map((field, i) => {
    const text = `f[${i + 1}]`;
    const type = valueOf(ATTEMPT_FIELDS[field]).type;
    const plain = type === "bytea" ? `decode(${text}, 'hex')` : `${text}::${type}`;
    const delayed = `now() + ${text}::double precision * interval '1 millisecond'`;
    return `${field === "nextAttemptAt" ? delayed : plain} as ${nameOf(field)}`;
  }).join(", "),
);

const writtenFields = FIELD_NAMES.filter((field) => !PLACE_FIELDS.has(field));
const WRITTEN_COLUMNS = sql.raw(writtenFields.map(nameOf).join(", "));
type Wrap = (column: string) => string;
/**
 * Selects the values of an attempt row. `settles` wraps the columns that only the last attempt of a round has, and
 * `keeps` the columns of the response.
 */
const selected = (settles: Wrap, keeps: Wrap) =>
  sql.raw(
    writtenFields
      .map((field) => {
        const name = `i.${nameOf(field)}`;
        if (ENTRY_FIELDS.has(field)) return settles(name);
        // A response without a body has an empty excerpt; without a response the excerpt is null.
        const isExcerpt = field === "responseExcerpt";
        const column = isExcerpt
          ? `coalesce(${name}, case when i.status_code is not null then '' end)`
          : name;
        return RESPONSE_FIELDS.has(field) ? keeps(column) : column;
      })
      .join(", "),
  );
/**
 * Whether the event of an attempt record was not erased since the load of its entry: its row in `review_history` exists
 * and has no `erased_at`. A test has no such row (its `payload_format` is null) and always counts as kept. The look-up
 * is a scalar subquery, which the planner never turns into a scan of all events, and runs only if something of the
 * partner was erased since that load.
 */
const IS_KEPT = `(f.read_erasures = f.erasures or coalesce(
  (select h.erased_at is null from review_history h where h.event_id = i.event_id), i.payload_format is null))`;
const ATTEMPT_VALUES = selected(
  (column) => `case when e.sequence is not null then ${column} end`,
  (column) => `case when ${IS_KEPT} then ${column} end`,
);
const RUN_VALUES = selected(
  (column) => column,
  (column) => column,
);

/** Whether the permanent failures in a row reach the 20th, even if a success follows. */
const REACHES_LIMIT = sql`
    (w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES} or r.longest >= ${DISABLE_AFTER_FAILURES})`;

/** Whether the outcome of a pending test enables the subscription (contract 6.16). */
const ENABLES_SUBSCRIPTION = sql`i.outcome = 'delivered'`;

/**
 * Writes the `outbox` rows that wait for their next attempt, counts permanent failures in a row, disables subscriptions
 * at the 20th, and applies the outcome of a pending test.
 */
function waitAndCount(now: SQL): SQL {
  return sql`
    waiting as (
      update outbox o set state = 'waiting', attempt = i.attempt + 1, due_at = i.next_attempt_at
        from rows i
       where i.outcome = 'retry' and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt and o.skipped_at is null
    ), placed as (
      -- A run of failures ends at the next success, so the successes up to each attempt record are counted.
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
      -- The rule about the 20th failure reads only w, the present row, because an enable may have committed since the
      -- statement began.
      update webhook_subscriptions w
         set consecutive_failure_count = case
               when ${REACHES_LIMIT} then ${DISABLE_AFTER_FAILURES}
               when r.succeeded then r.trailing
               else w.consecutive_failure_count + r.leading end,
             state = case when ${REACHES_LIMIT} then 'disabled' else 'active' end,
             disabled_at = case when ${REACHES_LIMIT} then ${now}::timestamptz end,
             disabled_reason = case when ${REACHES_LIMIT} then 'consecutive_failures' end,
             updated_at = case when ${REACHES_LIMIT} then ${now}::timestamptz else w.updated_at end
        from runs r
       where w.id = r.subscription_id and w.state = 'active'
         and (r.leading > 0 or r.longest > 0 or w.consecutive_failure_count > 0)
      returning w.id, w.state
    ), tested as (
      -- The outcome of a pending test enables the subscription, or leaves it disabled. The condition reads w, the
      -- present row, because another test may be pending by now.
      update webhook_subscriptions w
         set pending_test_event_id = null, updated_at = ${now}::timestamptz,
             state = case when ${ENABLES_SUBSCRIPTION} then 'active' else 'disabled' end,
             consecutive_failure_count = case when ${ENABLES_SUBSCRIPTION} then 0 else w.consecutive_failure_count end,
             disabled_at = case when not ${ENABLES_SUBSCRIPTION} then w.disabled_at end,
             disabled_reason = case when not ${ENABLES_SUBSCRIPTION} then w.disabled_reason end,
             disabled_note = case when not ${ENABLES_SUBSCRIPTION} then w.disabled_note end
        from input i join ended e on e.subscription_id = i.subscription_id and e.sequence = i.sequence
       where w.id = i.subscription_id and w.state = 'disabled' and w.pending_test_event_id = i.event_id
         and i.outcome in ('delivered', 'failed')
    )`;
}

/**
 * Locks the lease of this dispatcher until the commit, so that no other dispatcher can end it before, and decodes
 * `lines` into attempt records.
 */
const recordsOf = ({ dispatcherId, lines }: Readonly<Record<"dispatcherId" | "lines", SQL>>) => sql`
    with lease as materialized (
      -- The lock timeout applies to this statement only. A group that waits longer for a row is split (committer.ts).
      select id from dispatchers
       where id = ${dispatcherId} and set_config('lock_timeout', '100ms', true) is not null
         for key share
    ), lines as materialized (
      select string_to_array(line, chr(31), '') as f, ord
        from lease, string_to_table(${lines}, chr(30)) with ordinality as t(line, ord)
    ), input as not materialized (
      select ord, ${DECODED_FIELDS}
        from lines
    )`;

/** Returns the ids of the subscriptions that match, as one array. */
const idsWhere = (holds: SQL) => sql`array(select id from subscriptions where ${holds})`;

/** `erasures` has the number of erasures that the attempt records of each subscription have in common. */
const COMMIT_PARAMS = {
  dispatcherId: dispatchers.id,
  lines: value("text"),
  subscriptionIds: value("text"),
  erasures: value("text"),
};
const COMMIT_COLUMNS = {
  held: value("integer"),
  disabled: list(webhookSubscriptions.id),
  inactive: list(webhookSubscriptions.id),
  left: list(webhookSubscriptions.id),
};

/**
 * Commits the attempt records of successes of consecutive log entries: those from `firsts` to `lasts` of each
 * subscription.
 */
const commitRuns = statement({
  name: "attempts.commitRuns",
  // Raw SQL, because this is the hottest statement of all. With all attempts in one JSON parameter, 87,000 per second
  // are committed; in groups of 100 with an update per row 37,000; one by one 1,200.
  params: { ...COMMIT_PARAMS, firsts: value("text"), lasts: value("text") },
  columns: COMMIT_COLUMNS,
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
      -- A subscription is left to \`attempts.commit\` if a skip has moved its offset, if something of the partner was
      -- erased since the load, or if this commit was applied before and its response was lost.
      update outbox_offsets f set settled_through = r.last
        from runs r
       where f.subscription_id = r.id and f.settled_through = r.first - 1 and f.erasures = r.erasures
      returning f.subscription_id
    ), attempts as (
      insert into delivery_attempts (${WRITTEN_COLUMNS})
      select ${RUN_VALUES} from input i join advanced a on a.subscription_id = i.subscription_id
    ), counted as (
      -- The successes end the permanent failures in a row that were counted before.
      update webhook_subscriptions w set consecutive_failure_count = 0
        from subscriptions s
       where s.consecutive_failure_count > 0 and w.id = s.id and w.state = 'active'
         and w.id in (select subscription_id from advanced)
    )
    select (select count(*)::int from lease) as held, ${idsWhere(sql`state <> 'active'`)} as inactive,
           array[]::text[] as disabled, ${idsWhere(sql`id not in (select subscription_id from advanced)`)} as left`,
});

/**
 * Inserts `outbox` rows for entries that the offset passes before their round has ended: those that wait for a retry,
 * and those of other reviews that are under way.
 */
const PASSED_CTE = sql`
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
 * Removes events of the log from the skips that cover them, because their POSTs were under way at the time of the skip
 * and succeeded: a delivered event is not skipped (contract 6.16). The range of a skip is split before and after each
 * of them. The last part keeps the row of `outbox_skips`, and may be empty.
 */
const UNSKIPPED_CTES = sql`
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
 * Commits attempt records of any kind. Each entry may occur only once, and all attempt records of a subscription must
 * have the same number of erasures.
 */
const commitAny = statement({
  name: "attempts.commit",
  // Raw SQL, because the commit of attempts is the hottest work of a dispatcher (see `attempts.commitRuns`).
  params: { ...COMMIT_PARAMS, now: instant },
  columns: COMMIT_COLUMNS,
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
      -- The offsets are locked until the commit. If an offset has changed since the statement began, the subscription
      -- may have rows or erased events that the statement does not see, so its attempt records are left for the next
      -- statement.
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
    ), ${PASSED_CTE}, rows as not materialized (
      select i.* from input i join offsets f on f.subscription_id = i.subscription_id
       where (i.sequence > f.skipped_through or i.outcome = 'delivered')
         and not (i.is_logged and i.sequence > f.settled_through)
    ), removed as (
      -- The rows are found by their key and not by their ctid, because a row that another statement has just changed
      -- has a new ctid.
      delete from outbox o using rows i
       where i.outcome in ('delivered', 'failed') and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt and (o.skipped_at is null or i.outcome = 'delivered')
      returning o.subscription_id, o.sequence
    ), ${UNSKIPPED_CTES}, ended as materialized (
      select subscription_id, sequence from removed
       union all
      select subscription_id, sequence from moved where outcome <> 'retry'
       union all
      select subscription_id, sequence from unskipped
    ), attempts as (
      insert into delivery_attempts (${WRITTEN_COLUMNS})
      select ${ATTEMPT_VALUES}
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

/** The effects of a commit beyond the entries of its attempt records. */
export interface CommitResult {
  /** True if the lease of this process is gone, so that the commit wrote nothing. */
  readonly fenced: boolean;
  /** Subscriptions that the commit found inactive, among those whose attempts it recorded. */
  readonly inactive: readonly string[];
  readonly disabled: readonly string[];
}

interface CommitGroup {
  readonly records: readonly AttemptRecord[];
  readonly now: Date;
  /** The same instant as `now`, by the monotonic clock of the process. */
  readonly monotonicMs: number;
}

/**
 * Writes the attempt records of many actors: attempt rows, offsets, removed or waiting entries, failure counters, and
 * the disabling at the 20th failure (contract 6.3). The attempt records of a subscription are written as a whole or not
 * at all, and only while this process has its lease, which is a row that stays locked until the commit.
 *
 * A repeat with the same attempt records changes nothing: each of them changes an offset or an entry only if the entry
 * still is at this attempt, and a counter changes only with an entry.
 *
 * Usually all attempt records of a subscription are successes of consecutive log entries. The offset then moves from
 * before the first to the last, and nothing else has to be read (`commitRuns`). All other attempt records go into
 * `commitAny`. There the offset passes entries whose round has not ended and gives them rows in `outbox`: entries that
 * wait for a retry, and with lanes by review the entries of other reviews that are under way.
 *
 * All attempt records are passed as one text. PostgreSQL splits it at half the cost of json_to_recordset, and in a
 * small group at half the cost of one parameter per column.
 */
export async function commitAttempts(
  db: DbOrTx,
  dispatcherId: string,
  { records, now, monotonicMs }: CommitGroup,
): Promise<CommitResult> {
  const bySubscription = Map.groupBy(records, ({ subscriptionId }) => subscriptionId);
  const runs = new Map([...bySubscription].filter(([, own]) => isRun(own)));
  const first = await commitAllRuns(db, dispatcherId, runs, monotonicMs);
  let rest = records.filter(({ subscriptionId }) => !first.committed.has(subscriptionId));
  let { fenced } = first;
  const inactive: string[] = [...first.inactive];
  const disabled: string[] = [];
  while (rest.length > 0 && !fenced) {
    const [part, later] = untilRepeated(rest);
    const lines = encodeRecords(part, monotonicMs);
    const read = new Map(part.map(({ subscriptionId, erasures }) => [subscriptionId, erasures]));
    const sorted = [...read].toSorted(([a], [b]) => (a < b ? -1 : 1));
    const subscriptionIds = sorted.map(([id]) => id).join(BETWEEN_RECORDS);
    const erasures = sorted.map(([, number]) => number).join(BETWEEN_RECORDS);
    const given = { dispatcherId, lines, subscriptionIds, erasures, now };
    const row = onlyRow(await db.run(commitAny, given));
    fenced = row.held === 0;
    const left = new Set(row.left);
    rest = [...part.filter(({ subscriptionId }) => left.has(subscriptionId)), ...later];
    disabled.push(...row.disabled);
    // The CTE `subscriptions` has the states from before the statement, so the subscriptions that it disabled are
    // added.
    inactive.push(...row.inactive, ...row.disabled);
  }
  return { fenced, inactive, disabled };
}

/**
 * Splits attempt records into those of one statement and those of later ones. A statement may contain each entry only
 * once, and all its entries of a subscription must have been read after the same number of erasures.
 */
function untilRepeated(records: readonly AttemptRecord[]): [AttemptRecord[], AttemptRecord[]] {
  const seen = new Map<string, { readonly sequences: Set<number>; readonly erasures: number }>();
  const repeating = new Set<string>();
  const isFirst = ({ subscriptionId, sequence, erasures }: AttemptRecord) => {
    const before = seen.getOrInsert(subscriptionId, { sequences: new Set(), erasures });
    if (before.sequences.has(sequence) || before.erasures !== erasures)
      repeating.add(subscriptionId);
    before.sequences.add(sequence);
    return !repeating.has(subscriptionId);
  };
  const parts = Map.groupBy(records, isFirst);
  return [parts.get(true) ?? [], parts.get(false) ?? []];
}

/** Whether all attempt records are successes of consecutive log entries that were read after the same erasures. */
function isRun(records: readonly AttemptRecord[]): boolean {
  const [first] = records;
  const before = (first?.sequence ?? 0) - 1;
  return records.every(
    ({ decision, isLogged, sequence, erasures }, i) =>
      decision.kind === "delivered" &&
      isLogged &&
      sequence === before + 1 + i &&
      erasures === first?.erasures,
  );
}

type RunsById = ReadonlyMap<string, readonly AttemptRecord[]>;

/**
 * Commits runs by subscription. `committed` and `inactive` have the ids of subscriptions whose attempt records this
 * statement has written.
 */
async function commitAllRuns(
  db: DbOrTx,
  dispatcherId: string,
  runs: RunsById,
  monotonicMs: number,
) {
  const committed = new Set(runs.keys());
  if (runs.size === 0) return { fenced: false, inactive: [], committed };
  // Sorted, so that any two commits lock their rows in the same order.
  const sorted = [...runs].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, records]) => records);
  const each = (text: (records: readonly AttemptRecord[]) => string | number | undefined) =>
    sorted.map(text).join(BETWEEN_RECORDS);
  const given = {
    dispatcherId,
    lines: encodeRecords(sorted.flat(), monotonicMs),
    subscriptionIds: each((records) => records[0]?.subscriptionId),
    firsts: each((records) => records[0]?.sequence),
    lasts: each((records) => records.at(-1)?.sequence),
    erasures: each((records) => records[0]?.erasures),
  };
  const row = onlyRow(await db.run(commitRuns, given));
  for (const id of row.left) committed.delete(id);
  const inactive = row.inactive.filter((id) => committed.has(id));
  return { fenced: row.held === 0, inactive, committed };
}
