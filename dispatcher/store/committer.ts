import type { Clock } from "../../src/lib/clock.ts";
import { errorFields, type Log } from "../../src/lib/log.ts";
import type { AttemptRecord } from "./attempt.ts";
import type { CommitResult } from "./attempt-queries.ts";
import type { DispatchStore } from "./store.ts";

const RECORDS_PER_COMMIT = 512;
/** While Postgres writes one commit, the next is put together. */
const COMMITS_AT_ONCE = 2;
/** How long a commit that failed is left alone. */
const RETRY_MS = 100;

interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  /** Called after the commit: whether the subscription still is active. */
  readonly done: (active: boolean) => void;
}

interface CommitDeps {
  readonly store: DispatchStore;
  readonly clock: Clock;
  readonly log: Log;
}

interface CommitListener {
  /** The dispatcher of this id was declared dead: nothing was written. */
  fenced(dispatcherId: string): void;
  /** These subscriptions had their 20th permanent failure; mails to their owners are queued. */
  disabled(subscriptionIds: readonly string[]): void;
}

/**
 * Commits the outcomes of many actors together, those of one shard always in the same line: so no two commits at once
 * are about the same subscription, and its records are written in the order in which they came.
 */
export class Committer {
  readonly #lines: readonly CommitLine[];

  constructor(deps: CommitDeps, listener: CommitListener) {
    this.#lines = Array.from({ length: COMMITS_AT_ONCE }, () => new CommitLine(deps, listener));
  }

  /** How many records wait for their commit. */
  get backlog(): number {
    return this.#lines.reduce((sum, line) => sum + line.backlog, 0);
  }

  commit(dispatcherId: string, record: AttemptRecord, done: (active: boolean) => void): void {
    this.#lines[record.shard % COMMITS_AT_ONCE]?.commit({ dispatcherId, record, done });
  }

  /** Forgets what waits for its commit: the lease is lost, so it could not be written. */
  clear(): void {
    for (const line of this.#lines) line.clear();
  }
}

/** Commits one group at a time: the records that come while it runs go into the next. */
class CommitLine {
  #queue: Pending[] = [];
  #running = false;

  readonly #deps: CommitDeps;
  readonly #listener: CommitListener;

  constructor(deps: CommitDeps, listener: CommitListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  get backlog(): number {
    return this.#queue.length;
  }

  commit(pending: Pending): void {
    this.#queue.push(pending);
    if (!this.#running) void this.#run();
  }

  clear(): void {
    this.#queue = [];
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let group = this.#nextGroup(); group !== undefined; group = this.#nextGroup()) {
      const { dispatcherId, pending } = group;
      const result = await this.#commitUntilAnswered(dispatcherId, pending);
      const inactive = new Set(result.inactive);
      if (result.disabled.length > 0) this.#listener.disabled(result.disabled);
      if (result.fenced) this.#listener.fenced(dispatcherId);
      else for (const { record, done } of pending) done(!inactive.has(record.subscriptionId));
    }
    this.#running = false;
  }

  /** The next records of one dispatcher id: a process that lost its lease has another id afterwards. */
  #nextGroup(): { dispatcherId: string; pending: Pending[] } | undefined {
    const [first] = this.#queue;
    if (first === undefined) return undefined;
    const { dispatcherId } = first;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== dispatcherId);
    return {
      dispatcherId,
      pending: this.#queue.splice(
        0,
        Math.min(other < 0 ? RECORDS_PER_COMMIT : other, RECORDS_PER_COMMIT),
      ),
    };
  }

  /** Repeats until Postgres answers. If the answer to a commit was lost, its repeat changes nothing. */
  async #commitUntilAnswered(
    dispatcherId: string,
    group: readonly Pending[],
  ): Promise<CommitResult> {
    const records = group.map(({ record }) => record);
    for (let repeated = false; ; repeated = true) {
      try {
        return await this.#deps.store.commit(dispatcherId, records, repeated);
      } catch (error) {
        this.#deps.log.warn("attempts.uncommitted", {
          records: records.length,
          ...errorFields(error),
        });
        await this.#deps.clock.sleep(RETRY_MS);
      }
    }
  }
}
