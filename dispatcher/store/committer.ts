import { MAX_UNRECORDED, SEND_AHEAD } from "../actor/lane.ts";
import type { AttemptRecord, CommitResult } from "./attempt-queries.ts";
import { noteFailure, type Quarantine } from "./quarantine.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";

interface PendingRecord {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit, with whether the subscription is still active. */
  readonly done: (active: boolean) => void;
}

interface CommitStore {
  /** Commits attempt records. Those that are committed already change nothing. */
  commit(dispatcherId: string, records: readonly AttemptRecord[]): Promise<CommitResult>;
}

type CommitDeps = RunnerDeps & { readonly store: CommitStore; readonly quarantine?: Quarantine };

const RECORDS_PER_COMMIT = 512;
/**
 * A group of fewer attempt records waits for more, because a commit of one attempt record costs PostgreSQL nearly as
 * much as a commit of this many.
 */
const MIN_GROUP_RECORDS = SEND_AHEAD;
/** The longest wait for more attempt records, in milliseconds. */
const GATHER_MS = 8;
/**
 * The number instead of `MIN_GROUP_RECORDS` after a group with this many attempt records of one subscription. Its lane
 * sends one half of what it may send ahead while the other half is committed, and does not reach the limit.
 */
const MIN_BUSY_RECORDS = SEND_AHEAD / 2;
/**
 * The most attempt records of all actors that may wait for their commit, so that a slow database slows sending down.
 */
const MAX_BACKLOG = 2_048;
/**
 * The most quarantined attempt records, which bounds memory: 128 subscriptions with as many as each may have. The limit
 * is far above MAX_BACKLOG, so that a few locked rows do not stop the other subscriptions.
 */
const MAX_QUARANTINED = 128 * MAX_UNRECORDED;
/** The pause in milliseconds before a commit is retried that failed because PostgreSQL is out of reach. */
const RETRY_MS = 100;

export type CommitEvent =
  /** A group was committed, so there may be room for further attempt records. */
  | { readonly kind: "group_committed" }
  /** The lease of this id is gone, so the commit wrote nothing (fencing). */
  | { readonly kind: "lease_lost"; readonly dispatcherId: string }
  /** The commit disabled these subscriptions, which had their 20th permanent failure in a row. */
  | { readonly kind: "subscriptions_disabled"; readonly subscriptionIds: readonly string[] };

/**
 * Group commit of the attempt records of many actors. Groups are committed one after the other, so those of a
 * subscription keep their order. A small group waits up to GATHER_MS for more. A subscription whose attempt records
 * cannot be committed is quarantined (`GroupRunner`), and the others are committed without it.
 */
export class Committer {
  #queue: PendingRecord[] = [];
  #running = false;
  /** The number of attempt records for which the next group waits. */
  #minRecords = MIN_GROUP_RECORDS;
  /** Ends the wait for more attempt records when it aborts. */
  #gathering: AbortController | undefined;
  readonly #runner: GroupRunner<PendingRecord, CommitResult>;
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

  /** The number of attempt records that wait for their commit, without the quarantined ones. */
  get backlog(): number {
    return this.#queue.length;
  }

  /** Whether the committer takes more attempt records. Otherwise no send may begin. */
  get keepsUp(): boolean {
    return this.#queue.length < MAX_BACKLOG && this.#runner.waiting < MAX_QUARANTINED;
  }

  /** The number of quarantined subscriptions. */
  get quarantined(): number {
    return this.#runner.quarantined;
  }

  /**
   * Whether attempt records of this shard are quarantined. If so, the release of the shard waits for their commit for a
   * while.
   */
  hasQuarantined(shard: number): boolean {
    return this.#runner.hasQuarantined(({ record }) => record.shard === shard);
  }

  commit(dispatcherId: string, record: AttemptRecord, done: PendingRecord["done"]): void {
    this.#queue.push({ dispatcherId, record, done });
    if (!this.#running) void this.#run();
    else if (this.#queue.length >= this.#minRecords) this.#gathering?.abort("enough");
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
      this.#minRecords = hasBusy(group) ? MIN_BUSY_RECORDS : MIN_GROUP_RECORDS;
      await this.#runner.run(group);
    }
    this.#running = false;
  }

  async #gather(): Promise<void> {
    if (this.#queue.length >= this.#minRecords) return;
    this.#gathering = new AbortController();
    await this.#deps.clock.sleep(GATHER_MS, this.#gathering.signal);
    this.#gathering = undefined;
  }

  /**
   * Takes the next attempt records that have the same dispatcher id. The id changes when the process loses its lease.
   */
  #nextGroup(): PendingRecord[] {
    const id = this.#queue[0]?.dispatcherId;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== id);
    const end = other < 0 ? RECORDS_PER_COMMIT : other;
    return this.#queue.splice(0, Math.min(end, RECORDS_PER_COMMIT));
  }

  #committed(group: readonly PendingRecord[], { inactive, disabled, fenced }: CommitResult): void {
    const ended = new Set(inactive);
    if (disabled.length > 0)
      this.#report({ kind: "subscriptions_disabled", subscriptionIds: disabled });
    if (fenced)
      return this.#report({ kind: "lease_lost", dispatcherId: group[0]?.dispatcherId ?? "" });
    this.#report({ kind: "group_committed" });
    for (const { record, done } of group) done(!ended.has(record.subscriptionId));
  }
}

function hasBusy(group: readonly PendingRecord[]): boolean {
  if (group.length < MIN_BUSY_RECORDS) return false;
  const bySubscription = Map.groupBy(group, ({ record }) => record.subscriptionId);
  return bySubscription.values().some(({ length }) => length >= MIN_BUSY_RECORDS);
}
