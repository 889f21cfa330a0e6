import type { DbOrTx } from "../../db/client.ts";
import { onlyRow } from "../../db/statement.ts";
import { MAX_UNRECORDED, SEND_AHEAD } from "../actor/lane.ts";
import {
  type AttemptRecord,
  BETWEEN_RECORDS,
  commitAny,
  commitRuns,
  linesOf,
} from "./attempt-queries.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";

interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit: whether the subscription still is active. */
  readonly done: (active: boolean) => void;
}

interface CommitStore {
  /** May be called again with records that were committed: they change nothing more. */
  commit(dispatcherId: string, records: readonly AttemptRecord[]): Promise<CommitResult>;
}

type CommitDeps = RunnerDeps & { readonly store: CommitStore };

const RECORDS_PER_COMMIT = 512;
/** Fewer records wait for others, because a commit costs Postgres nearly the same whether it writes one record or these. */
const WORTH_A_COMMIT = SEND_AHEAD;
/** How long they wait at the most; contract 7.4 lets a commit trail by 10 ms. */
const GATHER_MS = 8;
/**
 * A subscription with this many records in one group sends faster than its records are committed. No group waits then: a
 * lane would have sent all that it may before a commit begins, and would stand still until it ends.
 */
const BUSY_RECORDS = SEND_AHEAD / 2;
/** A busy subscription counts as busy for this many groups. The group after a full one is often small, because the lane has just started again. */
const BUSY_GROUPS = 2;
/** The most records that may wait for their commit, over all actors, so that a slow database slows sending. */
const MAX_BACKLOG = 2_048;
/**
 * The most records that may wait in quarantine, so that memory is bounded: of 128 subscriptions that have as many as they
 * may. It is far above MAX_BACKLOG, so that a few locked rows stop nobody else.
 */
const MAX_QUARANTINED = 128 * MAX_UNRECORDED;
/** How long a commit is left alone that failed because Postgres is out of reach. */
const RETRY_MS = 100;

export interface CommitListener {
  /** The dispatcher of this id was declared dead: nothing was written. */
  fenced(dispatcherId: string): void;
  /** These subscriptions had their 20th permanent failure; mails to their owners are queued. */
  disabled(subscriptionIds: readonly string[]): void;
}

/**
 * Commits the outcomes of many actors together, one group at a time, so that the records of a subscription are written in
 * the order in which they came. While they are few they wait for GATHER_MS. A subscription whose records cannot be committed is
 * quarantined (`GroupRunner`), and the others are committed without it.
 */
export class Committer {
  #queue: Pending[] = [];
  #running = false;
  /** For how many groups a subscription is taken to be busy. */
  #busyGroups = 0;
  /** Ends the wait for more records. */
  #gathering: AbortController | undefined;
  readonly #runner: GroupRunner<Pending, CommitResult>;
  readonly #deps: CommitDeps;
  readonly #listener: CommitListener;

  constructor(deps: CommitDeps, listener: CommitListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#runner = new GroupRunner(deps, {
      keyOf: ({ record }) => record.subscriptionId,
      run: (group) => this.#commit(group),
      done: (group, result) => this.#tell(group, result),
      describe: ({ record: { subscriptionId, eventId, sequence } }) => ({
        subscription_id: subscriptionId,
        event_id: eventId,
        sequence,
      }),
      events: { failed: "attempts.uncommitted", stuck: "attempt.stuck" },
      retryMs: RETRY_MS,
    });
  }

  /** How many records wait for their commit, without the quarantined ones. */
  get backlog(): number {
    return this.#queue.length;
  }

  /** Whether there is room for more records. While there is none, no send begins. */
  get keepsUp(): boolean {
    return this.#queue.length < MAX_BACKLOG && this.#runner.waiting < MAX_QUARANTINED;
  }

  /** Counts the subscriptions in quarantine: their records cannot be committed now, while those of the others are. */
  get quarantined(): number {
    return this.#runner.quarantined;
  }

  /** Whether records of this shard are quarantined: it is better given up once they are committed. */
  holds(shard: number): boolean {
    return this.#runner.hasQuarantined(({ record }) => record.shard === shard);
  }

  commit(dispatcherId: string, record: AttemptRecord, done: Pending["done"]): void {
    this.#queue.push({ dispatcherId, record, done });
    if (!this.#running) void this.#run();
    else if (this.#queue.length >= WORTH_A_COMMIT) this.#gathering?.abort("enough");
  }

  /** Forgets what waits for its commit: the lease is lost, so it could not be written. */
  clear(): void {
    this.#queue = [];
    this.#runner.clear();
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0) {
      if (this.#busyGroups === 0) await this.#gather();
      const group = this.#nextGroup();
      this.#busyGroups = hasBusy(group) ? BUSY_GROUPS : Math.max(0, this.#busyGroups - 1);
      await this.#runner.run(group);
    }
    this.#running = false;
  }

  async #gather(): Promise<void> {
    if (this.#queue.length >= WORTH_A_COMMIT) return;
    this.#gathering = new AbortController();
    await this.#deps.clock.sleep(GATHER_MS, this.#gathering.signal);
    this.#gathering = undefined;
  }

  /** The next records of one dispatcher id: a process that lost its lease has another id afterwards. */
  #nextGroup(): Pending[] {
    const id = this.#queue[0]?.dispatcherId;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== id);
    const end = other < 0 ? RECORDS_PER_COMMIT : other;
    return this.#queue.splice(0, Math.min(end, RECORDS_PER_COMMIT));
  }

  /** If the answer to a commit was lost, its repeat changes nothing. */
  #commit(group: readonly Pending[]): Promise<CommitResult> {
    const records = group.map(({ record }) => record);
    return this.#deps.store.commit(group[0]?.dispatcherId ?? "", records);
  }

  #tell(group: readonly Pending[], { inactive, disabled, fenced }: CommitResult): void {
    const ended = new Set(inactive);
    if (disabled.length > 0) this.#listener.disabled(disabled);
    if (fenced) this.#listener.fenced(group[0]?.dispatcherId ?? "");
    else for (const { record, done } of group) done(!ended.has(record.subscriptionId));
  }
}

function hasBusy(group: readonly Pending[]): boolean {
  if (group.length < BUSY_RECORDS) return false;
  const bySubscription = Map.groupBy(group, ({ record }) => record.subscriptionId);
  return bySubscription.values().some(({ length }) => length >= BUSY_RECORDS);
}

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
