import { sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { markedThrough } from "../../db/marks.ts";
import { dispatchers } from "../../db/schema/dispatchers.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { instant, list, statement, typeOf, value } from "../../db/statement.ts";
import { ATTEMPT_FIELDS, type AttemptRecord } from "./attempt.ts";
import { DISABLE_AFTER_FAILURES } from "../actor/decide.ts";
import { BETWEEN_FIELDS, BETWEEN_RECORDS } from "./lines.ts";

// The commit of attempts is the hottest statement there is (`bun run bench dispatch`), so it is SQL: one statement for
// the records of many actors, which come as one text.

/** What a commit changed beyond its entries. */
export interface CommitResult {
  /** True: this process was declared dead, and nothing was written. */
  readonly fenced: boolean;
  /** Subscriptions of the records that are not active, or no longer. */
  readonly inactive: readonly string[];
  readonly disabled: readonly string[];
}

export interface CommitGroup {
  readonly records: readonly AttemptRecord[];
  /** They may have been written before: looking for that in each index is paid by such a group alone. */
  readonly repeated: boolean;
  readonly now: Date;
  /** The same instant by the monotonic clock of the process. */
  readonly monotonicMs: number;
}

const COLUMNS = Object.values(ATTEMPT_FIELDS);

/**
 * The fields of a line as columns. When a retry is due is for the clock of Postgres to say: a line has the ms until then,
 * so the wrong clock of one process neither blocks an entry nor sends it early.
 */
const NUMBERED = sql.raw(
  COLUMNS.map((column, i) => {
    const field = `f[${i + 1}]`;
    const typed =
      column === ATTEMPT_FIELDS.nextAttemptAt
        ? `(now() + ${field}::double precision * interval '1 millisecond')`
        : field;
    return `${typed}::${typeOf(column)} as ${column.name}`;
  }).join(", "),
);

/** The shard is of the entry alone. */
const written = COLUMNS.filter((column) => column !== ATTEMPT_FIELDS.shard);
const WRITTEN = sql.raw(written.map(({ name }) => name).join(", "));
const SELECTED = sql.raw(
  written
    .map(({ name }) =>
      name === ATTEMPT_FIELDS.responseExcerpt.name
        ? // An answer without a body has an empty excerpt; no answer has none.
          `coalesce(i.${name}, case when i.status_code is not null then '' end)`
        : `i.${name}`,
    )
    .join(", "),
);

/** After successes alone nothing waits, and a run of failures that came before them has ended. */
const RESET = sql`
    counted as (
      update webhook_subscriptions w set consecutive_failure_count = 0
        from subscriptions s
       where s.consecutive_failure_count > 0 and w.id = s.id and w.state = 'active'
         and w.id in (select subscription_id from removed)
      returning w.id, w.state
    )`;

/** Some run of failures reaches the 20th, whatever comes behind it. */
const REACHED = sql`
    (w.consecutive_failure_count + r.leading >= ${DISABLE_AFTER_FAILURES} or r.longest >= ${DISABLE_AFTER_FAILURES})`;

/** Entries that wait for their next attempt, and the runs of failures with what follows from them. */
function waitAndCount(now: SQL): SQL {
  return sql`
    waiting as (
      update outbox o set state = 'waiting', attempt = i.attempt + 1, due_at = i.next_attempt_at
        from input i
       where i.outcome = 'retry' and o.shard = i.shard and o.subscription_id = i.subscription_id
         and o.sequence = i.sequence and o.attempt = i.attempt
          and o.sequence > ${markedThrough(sql`i.subscription_id`)}
    ), placed as (
      -- A run of failures lasts to the next success: these are counted up to each record.
      select i.subscription_id, i.outcome,
             count(*) filter (where i.outcome = 'delivered') over (partition by i.subscription_id order by i.ord) as run
        from input i
        join removed r on r.subscription_id = i.subscription_id and r.sequence = i.sequence
                      and i.outcome in ('delivered', 'failed')
    ), counts as (
      select subscription_id, run, count(*) filter (where outcome = 'failed') as failures
        from placed group by subscription_id, run
    ), runs as (
      -- Failures before the first success continue the stored run; every other run begins anew.
      select subscription_id, max(run) > 0 as succeeded,
             coalesce(max(failures) filter (where run = 0), 0) as leading,
             coalesce(max(failures) filter (where run > 0), 0) as longest,
             (array_agg(failures order by run desc))[1] as trailing
        from counts group by subscription_id
    ), counted as (
      -- Only w is the row as it is now, should an enable have come in between; so the rule looks at w alone.
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
    )`;
}

/** The places of the entries that end. */
const FOUND = sql`
    ended as (
      -- A run without gaps is one walk; by a list of numbers the planner may walk over all that is queued.
      select shard, subscription_id, attempt, min(sequence) as first, max(sequence) as last
        from (select shard, subscription_id, attempt, sequence,
                     sequence - row_number() over (partition by shard, subscription_id, attempt order by sequence) as run
                from input where outcome in ('delivered', 'failed')) i
       group by shard, subscription_id, attempt, run
    ), found as materialized (
      -- The offset keeps this a look-up per run, whatever the planner thinks of the size of the outbox.
      -- What is marked counts as settled, whatever becomes of its last POST.
      select o.place
        from (select ended.*, ${markedThrough(sql`ended.subscription_id`)} as marked from ended) e
       cross join lateral (
               select ctid as place from outbox
               where shard = e.shard and subscription_id = e.subscription_id and sequence between e.first and e.last
                 and sequence > e.marked and attempt = e.attempt offset 0) o`;

/** `isSmooth`: every record is delivered. */
const commitOf = ({ isSmooth, isRepeated }: { isSmooth: boolean; isRepeated: boolean }) =>
  statement({
    name: `attempts.commit${isSmooth ? ".smooth" : ""}${isRepeated ? ".repeated" : ""}`,
    reason: "Measured: the hottest of all.",
    params: {
      dispatcherId: dispatchers.id,
      lines: value("text"),
      subscriptionIds: value("text"),
      now: instant,
    },
    columns: {
      held: value("integer"),
      disabled: list(webhookSubscriptions.id),
      inactive: list(webhookSubscriptions.id),
    },
    text: ({ dispatcherId, lines, subscriptionIds, now }) => sql`
    with lease as materialized (
      -- For this statement alone: who waits longer for a row is split from the others (committer.ts).
      select id from dispatchers
       where id = ${dispatcherId} and set_config('lock_timeout', '100ms', true) is not null
         for key share
    ), lines as materialized (
      select string_to_array(line, chr(31), '') as f, ord
        from lease, string_to_table(${lines}, chr(30)) with ordinality as t(line, ord)
    ), input as not materialized (
      select ord, ${NUMBERED}
        from lines
    ), subscriptions as materialized (
      select s.*
        from string_to_table(${subscriptionIds}, chr(30)) as given(id) cross join lateral (
               select id, state, consecutive_failure_count from webhook_subscriptions
                where id = given.id offset 0) s
    ), ${FOUND}
    ), removed as (
      delete from outbox where ctid = any(array(select place from found))
      returning subscription_id, sequence, payload_mode, batch_job_id, recorded_at
    ), attempts as (
      insert into delivery_attempts (${WRITTEN}, payload_mode, batch_job_id, recorded_at)
      select ${SELECTED}, r.payload_mode, r.batch_job_id, r.recorded_at
        from input i
        left join removed r on r.subscription_id = i.subscription_id and r.sequence = i.sequence
                           and i.outcome in ('delivered', 'failed')
          ${isRepeated ? sql`on conflict do nothing` : sql``}
    ), ${isSmooth ? RESET : waitAndCount(now)}
    select (select count(*)::int from lease) as held,
           array(select id from counted where state = 'disabled') as disabled,
           array(select id from subscriptions where state <> 'active') as inactive`,
  });

const COMMITS = {
  first: {
    smooth: commitOf({ isSmooth: true, isRepeated: false }),
    mixed: commitOf({ isSmooth: false, isRepeated: false }),
  },
  repeated: {
    smooth: commitOf({ isSmooth: true, isRepeated: true }),
    mixed: commitOf({ isSmooth: false, isRepeated: true }),
  },
};

/**
 * Writes the records of many actors in one statement: attempt rows, entries gone or waiting, failure counters
 * and the disabling at the 20th failure (contract 6.3). All of it or nothing; and only while this process holds
 * its lease, whose row is locked meanwhile. Sending the same records again changes nothing more: an entry moves only
 * from the attempt that the record is about, and counters follow the entries that moved.
 *
 * An entry that ends leaves the outbox, and its last attempt says how it ended. The entries of a subscription that follow
 * one another go in one walk of the index.
 *
 * All records come as one text: taking that apart costs Postgres half of what json_to_recordset does, and in a small
 * group half of what a parameter for each column does.
 */
export async function commitAttempts(
  db: DbOrTx,
  dispatcherId: string,
  { records, repeated, now, monotonicMs }: CommitGroup,
): Promise<CommitResult> {
  const isSmooth = records.every((record) => record.decision.kind === "delivered");
  const ids = new Set(records.map((record) => record.subscriptionId));
  const commit = COMMITS[repeated ? "repeated" : "first"][isSmooth ? "smooth" : "mixed"];
  const lines = records.map((record) => lineOf(record, monotonicMs)).join(BETWEEN_RECORDS);
  const subscriptionIds = [...ids].join(BETWEEN_RECORDS);
  const [row] = await db.run(commit, { dispatcherId, lines, subscriptionIds, now });
  if (row === undefined) throw new Error("A commit answers one row.");
  const { disabled } = row;
  // `subscriptions` is as it was before this statement.
  return { fenced: row.held === 0, inactive: [...row.inactive, ...disabled], disabled };
}

type Field = keyof typeof ATTEMPT_FIELDS;

/**
 * Each field of a line. A function for each, because reading a field by a name that changes costs as much as all the rest
 * of a line.
 */
const TEXT_OF: { readonly [F in Field]: (record: AttemptRecord, nowMs: number) => string } = {
  id: ({ id }) => id,
  shard: ({ shard }) => `${shard}`,
  subscriptionId: ({ subscriptionId }) => subscriptionId,
  sequence: ({ sequence }) => `${sequence}`,
  eventId: ({ eventId }) => eventId,
  event: ({ event }) => event,
  round: ({ round }) => `${round}`,
  attempt: ({ attempt }) => `${attempt}`,
  startedAt: ({ startedAt }) => startedAt.toISOString(),
  durationMs: ({ durationMs }) => `${durationMs}`,
  outcome: ({ decision }) => decision.kind,
  nextAttemptAt: ({ decision, endedMs }, nowMs) =>
    decision.kind === "retry" ? `${endedMs + decision.delayMs - nowMs}` : "",
  statusCode: ({ statusCode }) => `${statusCode ?? ""}`,
  errorCode: ({ errorCode }) => errorCode ?? "",
  resent: ({ resent }) => `${resent}`,
  possiblyRepeated: ({ possiblyRepeated }) => `${possiblyRepeated}`,
  responseTruncated: ({ responseTruncated }) => `${responseTruncated}`,
  composer: ({ composer }) => `${composer ?? ""}`,
  host: ({ host }) => host ?? "",
  signature: ({ signature }) => byteaOf(signature),
  previousSignature: ({ previousSignature }) => byteaOf(previousSignature),
  bodyDigest: ({ bodyDigest }) => byteaOf(bodyDigest),
  requestHeaders: ({ requestHeaders }) => jsonOf(requestHeaders),
  requestBody: ({ requestBody }) => requestBody ?? "",
  responseHeaders: ({ responseHeaders }) => jsonOf(responseHeaders),
  responseExcerpt: ({ responseExcerpt }) => storable(responseExcerpt),
};

// Object.keys does not say that it answers the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
const TEXTS = (Object.keys(ATTEMPT_FIELDS) as Field[]).map((field) => TEXT_OF[field]);

function lineOf(record: AttemptRecord, nowMs: number): string {
  let line = "";
  for (const text of TEXTS) line += text(record, nowMs) + BETWEEN_FIELDS;
  return line.slice(0, -1);
}

function byteaOf(hex: string | null): string {
  return hex === null ? "" : `\\x${hex}`;
}

function jsonOf(headers: object | null): string {
  return headers === null ? "" : JSON.stringify(headers);
}

const UNSTORABLE = new RegExp(`[\\0${BETWEEN_RECORDS}${BETWEEN_FIELDS}]`, "g");

/**
 * What a receiver sent, without NUL and halves of surrogate pairs, which Postgres text cannot hold, and without our
 * separators. In JSON all of these are escaped already.
 */
function storable(text: string | null): string {
  if (text === null || text === "") return "";
  return text.replaceAll(UNSTORABLE, "\uFFFD").toWellFormed();
}
