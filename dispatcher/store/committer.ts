import type { DbOrTx } from "../../db/client.ts";
import { onlyRow } from "../../db/statement.ts";
import { MAX_UNRECORDED, SEND_AHEAD } from "../actor/lane.ts";
import {
  type AttemptRecord,
  BETWEEN_RECORDS,
  commitAny,
  commitRuns,
  encodeRecords,
} from "./attempt-queries.ts";
import { noteFailure, type Quarantine } from "./quarantine.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";

interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit, with whether the subscription is still active. */
  readonly done: (active: boolean) => void;
}

interface CommitStore {
  /** Commits attempt records. Records that are committed already change nothing. */
  commit(dispatcherId: string, records: readonly AttemptRecord[]): Promise<CommitResult>;
}

type CommitDeps = RunnerDeps & { readonly store: CommitStore; readonly quarantine?: Quarantine };

const RECORDS_PER_COMMIT = 512;
/**
 * A group of fewer records waits for more records, because a commit of one record costs PostgreSQL nearly as much as
 * a commit of this many.
 */
const WORTH_A_COMMIT = SEND_AHEAD;
/**
 * The records that are worth a commit after a group with this many of one subscription. Its lane sends one half of what it
 * may send ahead while the other half is committed, and does not stand still at the limit.
 */
const WORTH_FOR_BUSY = SEND_AHEAD / 2;
/** The longest wait for more records, in milliseconds. */
const GATHER_MS = 8;
/** The most records of all actors that may wait for their commit, so that a slow database slows sending down. */
const MAX_BACKLOG = 2_048;
/**
 * The most records in quarantine, which bounds memory: 128 subscriptions with as many as each may have. The limit is far
 * above MAX_BACKLOG, so that a few locked rows do not stop the other subscriptions.
 */
const MAX_QUARANTINED = 128 * MAX_UNRECORDED;
/** The pause in milliseconds before a commit is retried that failed because PostgreSQL is out of reach. */
const RETRY_MS = 100;

export type CommitEvent =
  /** The lease of this id is gone, so the commit wrote nothing (fencing). */
  | { readonly kind: "lease_lost"; readonly dispatcherId: string }
  /** The commit disabled these subscriptions, which had their 20th permanent failure in a row. */
  | { readonly kind: "subscriptions_disabled"; readonly subscriptionIds: readonly string[] };

/**
 * Group commit of the attempt records of many actors. Groups are committed one after the other, so the records of a
 * subscription keep their order. A small group waits up to GATHER_MS for more records. A subscription whose records cannot
 * be committed is quarantined (`GroupRunner`), and the others are committed without it.
 */
export class Committer {
  #queue: Pending[] = [];
  #running = false;
  /** The number of records for which the next group waits. */
  #worth = WORTH_A_COMMIT;
  /** Ends the wait for more records when it aborts. */
  #gathering: AbortController | undefined;
  readonly #runner: GroupRunner<Pending, CommitResult>;
  readonly #deps: CommitDeps;
  readonly #report: (event: CommitEvent) => void;

  constructor(deps: CommitDeps, report: (event: CommitEvent) => void) {
    this.#deps = deps;
    this.#report = report;
    this.#runner = new GroupRunner(deps, {
      keyOf: ({ record }) => record.subscriptionId,
      run: (group) => {
        const records = group.map(({ record }) => record);
        return deps.store.commit(group[0]?.dispatcherId ?? "", records);
      },
      done: (group, result) => this.#committed(group, result),
      describe: ({ record: { subscriptionId, eventId, sequence } }) => ({
        subscription_id: subscriptionId,
        event_id: eventId,
        sequence,
      }),
      quarantined: ({ record: { subscriptionId, eventId, sequence } }, failure) =>
        noteFailure(deps.quarantine, subscriptionId, {
          reason: "unrecordable",
          failure,
          entry: { event_id: eventId, sequence },
        }),
      events: { failed: "attempts.commit_failed", stuck: "attempt.stuck" },
      retryMs: RETRY_MS,
    });
  }

  /** The number of records that wait for their commit, without the quarantined ones. */
  get backlog(): number {
    return this.#queue.length;
  }

  /** Whether the committer takes more records. Otherwise no send may begin. */
  get keepsUp(): boolean {
    return this.#queue.length < MAX_BACKLOG && this.#runner.waiting < MAX_QUARANTINED;
  }

  /** The number of quarantined subscriptions. */
  get quarantined(): number {
    return this.#runner.quarantined;
  }

  /** Whether attempt records of this shard are quarantined. The shard is better released once they are committed. */
  hasQuarantined(shard: number): boolean {
    return this.#runner.hasQuarantined(({ record }) => record.shard === shard);
  }

  commit(dispatcherId: string, record: AttemptRecord, done: Pending["done"]): void {
    this.#queue.push({ dispatcherId, record, done });
    if (!this.#running) void this.#run();
    else if (this.#queue.length >= this.#worth) this.#gathering?.abort("enough");
  }

  /** Forgets all attempt records, which cannot be committed any more because the lease is lost. */
  clear(): void {
    this.#queue = [];
    this.#runner.clear();
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      await this.#gather();
      const group = this.#nextGroup();
      this.#worth = hasBusy(group) ? WORTH_FOR_BUSY : WORTH_A_COMMIT;
      await this.#runner.run(group);
    }
    this.#running = false;
  }

  async #gather(): Promise<void> {
    if (this.#queue.length >= this.#worth) return;
    this.#gathering = new AbortController();
    await this.#deps.clock.sleep(GATHER_MS, this.#gathering.signal);
    this.#gathering = undefined;
  }

  /**
   * Takes the next attempt records that have the same dispatcher id. The id changes when the process loses its lease.
   */
  #nextGroup(): Pending[] {
    const id = this.#queue[0]?.dispatcherId;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== id);
    const end = other < 0 ? RECORDS_PER_COMMIT : other;
    return this.#queue.splice(0, Math.min(end, RECORDS_PER_COMMIT));
  }

  #committed(group: readonly Pending[], { inactive, disabled, fenced }: CommitResult): void {
    const ended = new Set(inactive);
    if (disabled.length > 0)
      this.#report({ kind: "subscriptions_disabled", subscriptionIds: disabled });
    if (fenced) this.#report({ kind: "lease_lost", dispatcherId: group[0]?.dispatcherId ?? "" });
    else for (const { record, done } of group) done(!ended.has(record.subscriptionId));
  }
}

function hasBusy(group: readonly Pending[]): boolean {
  if (group.length < WORTH_FOR_BUSY) return false;
  const bySubscription = Map.groupBy(group, ({ record }) => record.subscriptionId);
  return bySubscription.values().some(({ length }) => length >= WORTH_FOR_BUSY);
}

/** The effects of a commit beyond the entries of its attempt records. */
export interface CommitResult {
  /** True if the lease of this process is gone, so that the commit wrote nothing. */
  readonly fenced: boolean;
  /** Subscriptions that the commit found inactive, among those whose attempts it recorded. */
  readonly inactive: readonly string[];
  readonly disabled: readonly string[];
}

export interface CommitGroup {
  readonly records: readonly AttemptRecord[];
  readonly now: Date;
  /** The same instant as `now`, by the monotonic clock of the process. */
  readonly monotonicMs: number;
}

/**
 * Writes the attempt records of many actors: attempt rows, offsets, removed or waiting entries, failure counters, and
 * the disabling at the 20th failure (contract 6.3). The records of a subscription are written as a whole or not at
 * all, and only while this process has its lease, which is a row that stays locked until the commit.
 *
 * A repeat with the same records changes nothing: an offset and an entry move only from the attempt of the record,
 * and counters follow the entries that moved.
 *
 * Usually all records of a subscription are successes of consecutive log entries. The offset then moves from before
 * the first to the last, and nothing else has to be read (`commitRuns`). All other records go into `commitAny`. There
 * the offset passes unsettled entries and gives them rows in `outbox`: entries that wait for a retry, and with lanes
 * by review the entries of other reviews that are under way.
 *
 * All records are passed as one text. PostgreSQL splits it at half the cost of json_to_recordset, and in a small
 * group at half the cost of one parameter per column.
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
    // The CTE `subscriptions` has the states from before the statement, so the disabled ones are added.
    inactive.push(...row.inactive, ...row.disabled);
  }
  return { fenced, inactive, disabled };
}

/**
 * Splits the records before the first repeated entry of each subscription, and before its first one that was read after
 * another number of erasures: one statement may contain an entry only once, and one number of each subscription.
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

/** Whether all records are successes of consecutive log entries that were read after the same erasures. */
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

type Runs = ReadonlyMap<string, readonly AttemptRecord[]>;

/** Commits runs by subscription. `committed` and `inactive` have the ids of those that this statement recorded. */
async function commitAllRuns(db: DbOrTx, dispatcherId: string, runs: Runs, monotonicMs: number) {
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
