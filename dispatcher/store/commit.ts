import type { DbOrTx } from "../../db/client.ts";
import { onlyRow } from "../../db/statement.ts";
import { commitAny, commitRuns } from "./attempt-queries.ts";
import { BETWEEN_RECORDS, linesOf, type AttemptRecord } from "./attempt.ts";

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
  readonly now: Date;
  /** The same instant by the monotonic clock of the process. */
  readonly monotonicMs: number;
}

/**
 * Writes the records of many actors: attempt rows, offsets, entries gone or waiting, failure counters and the disabling at
 * the 20th failure (contract 6.3). Of each subscription all of it or nothing; and only while this process holds its lease,
 * whose row is locked meanwhile. Sending the same records again changes nothing more: an offset and an entry move only
 * from the attempt that the record is about, and counters follow the entries that moved.
 *
 * Mostly every record of a subscription is a success of its log, one behind the other: then its offset moves from before
 * the first to the last, and nothing else has to be looked at. All others go into the statement for any records. There
 * the offset passes entries that are not settled and gives them rows in `outbox`: one that waits for a retry, and with
 * lanes by review those of other reviews that are under way.
 *
 * All records come as one text: taking that apart costs Postgres half of what json_to_recordset does, and in a small
 * group half of what a parameter for each column does.
 */
export async function commitAttempts(
  db: DbOrTx,
  dispatcherId: string,
  group: CommitGroup,
): Promise<CommitResult> {
  const bySubscription = Map.groupBy(group.records, ({ subscriptionId }) => subscriptionId);
  const runs = new Map([...bySubscription].filter(([, records]) => isRun(records)));
  const first = await commitAllRuns(db, dispatcherId, { ...group, runs });
  let rest = group.records.filter(({ subscriptionId }) => !first.committed.has(subscriptionId));
  let { fenced } = first;
  const inactive = [...first.inactive];
  const disabled: string[] = [];
  while (rest.length > 0 && !fenced) {
    const [records, later] = untilRepeated(rest);
    const row = await commitOthers(db, dispatcherId, { ...group, records });
    fenced = row.held === 0;
    const left = new Set(row.left);
    rest = [...records.filter(({ subscriptionId }) => left.has(subscriptionId)), ...later];
    disabled.push(...row.disabled);
    // `subscriptions` is as it was before the statement.
    inactive.push(...row.inactive, ...row.disabled);
  }
  return { fenced, inactive, disabled };
}

/** Of each subscription the records up to one whose entry came before, and the rest: a statement has an entry once. */
function untilRepeated(records: readonly AttemptRecord[]): [AttemptRecord[], AttemptRecord[]] {
  const seen = new Map<string, Set<number>>();
  const repeating = new Set<string>();
  const isFirst = ({ subscriptionId, sequence }: AttemptRecord) => {
    const sequences = seen.get(subscriptionId) ?? new Set();
    if (sequences.has(sequence)) repeating.add(subscriptionId);
    seen.set(subscriptionId, sequences.add(sequence));
    return !repeating.has(subscriptionId);
  };
  const { true: first = [], false: later = [] } = Object.groupBy(records, (one) =>
    isFirst(one) ? "true" : "false",
  );
  return [first, later];
}

/** Whether these are successes of entries of the log that follow one another. */
function isRun(records: readonly AttemptRecord[]): boolean {
  const before = (records[0]?.sequence ?? 0) - 1;
  return records.every(
    ({ decision, isLogged, sequence }, i) =>
      decision.kind === "delivered" && isLogged && sequence === before + 1 + i,
  );
}

type Runs = ReadonlyMap<string, readonly AttemptRecord[]>;

async function commitAllRuns(
  db: DbOrTx,
  dispatcherId: string,
  { runs, monotonicMs }: CommitGroup & { readonly runs: Runs },
): Promise<CommitResult & { readonly committed: ReadonlySet<string> }> {
  const committed = new Set(runs.keys());
  if (runs.size === 0) return { fenced: false, inactive: [], disabled: [], committed };
  // In one order, as the locks of any two commits.
  const sorted = [...runs].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const each = (text: (records: readonly AttemptRecord[]) => string | number | undefined) =>
    sorted.map(([, records]) => text(records)).join(BETWEEN_RECORDS);
  const given = {
    dispatcherId,
    lines: linesOf(
      sorted.flatMap(([, records]) => records),
      monotonicMs,
    ),
    subscriptionIds: each((records) => records[0]?.subscriptionId),
    firsts: each((records) => records[0]?.sequence),
    lasts: each((records) => records.at(-1)?.sequence),
  };
  const row = onlyRow(await db.run(commitRuns, given));
  for (const id of row.left) committed.delete(id);
  const inactive = row.inactive.filter((id) => committed.has(id));
  return { fenced: row.held === 0, inactive, disabled: [], committed };
}

async function commitOthers(
  db: DbOrTx,
  dispatcherId: string,
  { records, now, monotonicMs }: CommitGroup,
) {
  const ids = new Set(records.map((record) => record.subscriptionId));
  const lines = linesOf(records, monotonicMs);
  const subscriptionIds = [...ids].toSorted().join(BETWEEN_RECORDS);
  return onlyRow(await db.run(commitAny, { dispatcherId, lines, subscriptionIds, now }));
}
