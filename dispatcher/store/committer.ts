import { errorFields } from "../../src/lib/log.ts";
import { SEND_AHEAD } from "../actor/lane.ts";
import { Apart, type CommitDeps, type Pending } from "./apart.ts";
import { commitFailureOf, type CommitFailure } from "./commit-failure.ts";
import type { AttemptRecord } from "./attempt.ts";
import type { CommitResult } from "./attempt-queries.ts";

const RECORDS_PER_COMMIT = 512;
/**
 * Fewer records wait for others after a commit, because one costs Postgres nearly the same whether it writes one record or
 * these. A lane that has sent all that it may before its commit has as many, and is not kept waiting.
 */
const WORTH_A_COMMIT = SEND_AHEAD;
/** How long they wait at the most; contract 7.4 lets a commit trail by twice as much. */
const GATHER_MS = 5;
/** How long a commit that failed is left alone. */
const RETRY_MS = 100;

export interface CommitListener {
  /** The dispatcher of this id was declared dead: nothing was written. */
  fenced(dispatcherId: string): void;
  /** These subscriptions had their 20th permanent failure; mails to their owners are queued. */
  disabled(subscriptionIds: readonly string[]): void;
}

/**
 * Commits the outcomes of many actors together, one group at a time, so that the records of a subscription are written in
 * the order in which they came. A record that comes while no commit runs goes at once; those that come while one runs, or
 * within GATHER_MS of it while they are few, go into the next. A group that fails is split until the subscription that it
 * fails for is alone; that one goes on apart, and the others at once.
 */
export class Committer {
  #queue: Pending[] = [];
  #running = false;
  /** Ends the wait for more records. */
  #gathering: AbortController | undefined;
  readonly #apart: Apart;
  readonly #deps: CommitDeps;
  readonly #listener: CommitListener;

  constructor(deps: CommitDeps, listener: CommitListener) {
    this.#deps = deps;
    this.#listener = listener;
    this.#apart = new Apart(deps, (group) => this.#try(group, true));
  }

  /** How many records wait for their commit. Those apart are few for each subscription, and hold back nobody. */
  get backlog(): number {
    return this.#queue.length;
  }

  /** Of how many subscriptions the outcomes cannot be committed now, while those of the others are. */
  get apart(): number {
    return this.#apart.size;
  }

  /** Whether outcomes of this shard are apart: it is better given up once they are committed. */
  holds(shard: number): boolean {
    return this.#apart.holds(shard);
  }

  commit(dispatcherId: string, record: AttemptRecord, done: Pending["done"]): void {
    this.#queue.push({ dispatcherId, record, done });
    if (!this.#running) void this.#run();
    else if (this.#queue.length >= WORTH_A_COMMIT) this.#gathering?.abort("enough");
  }

  /** Forgets what waits for its commit: the lease is lost, so it could not be written. */
  clear(): void {
    this.#queue = [];
    this.#apart.clear();
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let group = this.#nextGroup(); group.length > 0; group = this.#nextGroup()) {
      await this.#write(group, false);
      await this.#gather();
    }
    this.#running = false;
  }

  async #gather(): Promise<void> {
    const waiting = this.#queue.length;
    if (waiting === 0 || waiting >= WORTH_A_COMMIT) return;
    this.#gathering = new AbortController();
    await this.#deps.clock.sleep(GATHER_MS, this.#gathering.signal);
    this.#gathering = undefined;
  }

  /**
   * The next records of one dispatcher id: a process that lost its lease has another id afterwards. Those of a subscription
   * that is apart go behind what it has there.
   */
  #nextGroup(): Pending[] {
    this.#queue = this.#queue.filter((one) => !this.#apart.take(one));
    const id = this.#queue[0]?.dispatcherId;
    const other = this.#queue.findIndex((one) => one.dispatcherId !== id);
    const end = other < 0 ? RECORDS_PER_COMMIT : other;
    return this.#queue.splice(0, Math.min(end, RECORDS_PER_COMMIT));
  }

  /** Repeats while Postgres cannot be had. If the answer to a commit was lost, its repeat changes nothing. */
  async #write(group: readonly Pending[], repeated: boolean): Promise<void> {
    let failure = await this.#try(group, repeated);
    while (failure === "store") {
      await this.#deps.clock.sleep(RETRY_MS);
      failure = await this.#try(group, true);
    }
    if (failure === undefined) return;
    const [first, second] = halvesOf(group);
    if (second.length === 0) return this.#apart.begin(first);
    await this.#write(first, true);
    await this.#write(second, true);
  }

  /** Answers why it failed; nothing if it did not. */
  async #try(group: readonly Pending[], repeated: boolean): Promise<CommitFailure | undefined> {
    const [first] = group;
    if (first === undefined) return undefined;
    const records = group.map(({ record }) => record);
    let result: CommitResult;
    try {
      result = await this.#deps.store.commit(first.dispatcherId, records, repeated);
    } catch (error) {
      const failure = commitFailureOf(error);
      const fields = { records: records.length, failure, ...errorFields(error) };
      this.#deps.log.warn("attempts.uncommitted", fields);
      return failure;
    }
    const inactive = new Set(result.inactive);
    if (result.disabled.length > 0) this.#listener.disabled(result.disabled);
    if (result.fenced) this.#listener.fenced(first.dispatcherId);
    else for (const { record, done } of group) done(!inactive.has(record.subscriptionId));
    return undefined;
  }
}

/** The records of half of the subscriptions, and those of the others, each in order; the second is empty for a single one. */
export function halvesOf(group: readonly Pending[]): readonly [Pending[], Pending[]] {
  const ids = [...new Set(group.map(({ record }) => record.subscriptionId))];
  const firsts = new Set(ids.slice(0, Math.ceil(ids.length / 2)));
  const isFirst = ({ record }: Pending) => firsts.has(record.subscriptionId);
  return [group.filter(isFirst), group.filter((one) => !isFirst(one))];
}
