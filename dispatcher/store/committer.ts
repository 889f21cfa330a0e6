import type { CommitDeps } from "./apart.ts";
import type { AttemptRecord } from "./attempt.ts";
import { CommitLine, type CommitListener } from "./commit-line.ts";

/** While Postgres writes one commit, the next is put together. */
const COMMITS_AT_ONCE = 2;

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
    let backlog = 0;
    for (const line of this.#lines) backlog += line.backlog;
    return backlog;
  }

  /** Of how many subscriptions the outcomes cannot be committed now, while those of the others are. */
  get apart(): number {
    return this.#lines.reduce((sum, line) => sum + line.apart, 0);
  }

  /** Whether outcomes of this shard are apart: it is better given up once they are committed. */
  holds(shard: number): boolean {
    return this.#lines.some((line) => line.holds(shard));
  }

  commit(dispatcherId: string, record: AttemptRecord, done: (active: boolean) => void): void {
    this.#lines[record.shard % COMMITS_AT_ONCE]?.commit({ dispatcherId, record, done });
  }

  /** Forgets what waits for its commit: the lease is lost, so it could not be written. */
  clear(): void {
    for (const line of this.#lines) line.clear();
  }
}
