import type { Clock } from "../src/lib/clock.ts";
import { errorFields, type Log } from "../src/lib/log.ts";
import type { AttemptRecord } from "./attempt.ts";
import type { CommitResult } from "./queries.ts";
import type { DispatchStore } from "./store.ts";

/** Records per commit. */
const GROUP = 512;
const RETRY_MS = 100;

interface Pending {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  readonly done: (active: boolean) => void;
}

interface CommitListener {
  /** The dispatcher of this id was declared dead: nothing was written. */
  fenced(dispatcherId: string): void;
  /** These subscriptions had their last permanent failure; mails to their owners are queued. */
  disabled(subscriptionIds: readonly string[]): void;
}

/**
 * Commits the outcomes of many actors together: whatever ends while one commit runs goes into the next. One commit
 * at a time, so records are written in the order in which they came.
 */
export class Committer {
  #queue: Pending[] = [];
  #running = false;

  readonly #deps: { readonly store: DispatchStore; readonly clock: Clock; readonly log: Log };
  readonly #listener: CommitListener;

  constructor(deps: { store: DispatchStore; clock: Clock; log: Log }, listener: CommitListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** How many records wait for their commit. */
  get backlog(): number {
    return this.#queue.length;
  }

  commit(dispatcherId: string, record: AttemptRecord, done: (active: boolean) => void): void {
    this.#queue.push({ dispatcherId, record, done });
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

  /** A process that lost its lease has another id afterwards: one commit is of one id. */
  #nextGroup(): { dispatcherId: string; pending: Pending[] } | undefined {
    const [first] = this.#queue;
    if (first === undefined) return undefined;
    const { dispatcherId } = first;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== dispatcherId);
    return {
      dispatcherId,
      pending: this.#queue.splice(0, Math.min(other < 0 ? GROUP : other, GROUP)),
    };
  }

  /** Repeats until the database answers: a repeat of what was committed unnoticed changes nothing. */
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
