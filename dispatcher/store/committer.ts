import { MAX_UNRECORDED, SEND_AHEAD } from "../actor/lane.ts";
import type { CommitResult } from "./commit.ts";
import type { AttemptRecord } from "./attempt.ts";
import { GroupRunner, type RunnerDeps } from "./group-runner.ts";
import type { DispatchStore } from "./store.ts";

interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit: whether the subscription still is active. */
  readonly done: (active: boolean) => void;
}

type CommitDeps = RunnerDeps & { readonly store: Pick<DispatchStore, "commit"> };

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
