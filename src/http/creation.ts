import { unavailable } from "../lib/problem.ts";

/** A creating request that its client may repeat with the same `Idempotency-Key` (contract 2.14). */
export interface KeyedRequest {
  /** The user of the token; each user has keys of its own. */
  readonly userId: number;
  readonly key: string;
  /** The digest of path, body and authority. */
  readonly digest: string;
}

/** The row that keeps the response of a creating request. */
export interface KeyedResponse extends KeyedRequest {
  readonly sealedResponse: string;
  readonly createdAt: Date;
  /** An older row of the key from this instant or before has ended. */
  readonly expired: Date;
}

interface Responses {
  /** Makes the row of a response. */
  keep(body: unknown): KeyedResponse;
  /** Returns the stored body; undefined if there is none of this request. */
  find(): Promise<unknown>;
}

export const CREATED = 201;

/**
 * A creating request with an `Idempotency-Key` (contract 2.14). Its transaction stays open until the response is known
 * and stored with the record, so that the database has both or neither.
 */
export class Creation {
  readonly #responses: Responses;
  readonly #body = Promise.withResolvers<unknown>();
  readonly #afterCommit: (() => void)[] = [];
  #committed: Promise<void> | undefined;

  constructor(responses: Responses) {
    this.#responses = responses;
    // A request may fail before its transaction waits for the body.
    this.#body.promise.catch(() => {});
  }

  /**
   * Begins the transaction and returns the result that it hands over before its commit. `hand` resolves with the row that
   * the transaction has to insert.
   */
  run<T>(begin: (hand: (result: T) => Promise<KeyedResponse>) => Promise<void>): Promise<T> {
    const handed = Promise.withResolvers<T>();
    let isHanded = false;
    this.#committed = begin(async (result) => {
      // The response is made from the result of the first try, which a second try would change.
      if (isHanded) throw unavailable();
      isHanded = true;
      handed.resolve(result);
      return this.#responses.keep(await this.#body.promise);
    });
    this.#committed.catch(handed.reject);
    return handed.promise;
  }

  /** Calls `work` after the commit. */
  afterCommit(work: () => void): void {
    this.#afterCommit.push(work);
  }

  /** Commits the record of a request that answers 201, together with its response. */
  async created(body: unknown): Promise<void> {
    // Nothing would hold the key of such a route.
    if (this.#committed === undefined) throw new Error("A record was made without `creating`.");
    this.#body.resolve(body);
    await this.#committed;
    for (const work of this.#afterCommit) work();
  }

  /**
   * Rolls back what a request did that failed. Returns the stored response if it was refused because another request
   * with the same key was faster.
   */
  async failed(status: number): Promise<unknown> {
    if (this.#committed !== undefined) {
      this.#body.reject(new Error("The request failed."));
      await this.#committed.catch(() => {});
    }
    return status < 500 ? this.#responses.find().catch(() => undefined) : undefined;
  }
}
