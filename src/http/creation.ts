import { unavailable } from "../lib/problem.ts";

/** A request that creates something and that its client may repeat with the same `Idempotency-Key` (contract 2.14). */
export interface KeyedRequest {
  /** The user of the token. Each user has a separate set of keys. */
  readonly userId: number;
  readonly key: string;
  /** The digest of path, body and authority of the request. */
  readonly digest: string;
}

/** The row that stores the response of a keyed request. */
export interface KeyedResponse extends KeyedRequest {
  readonly sealedResponse: string;
  readonly createdAt: Date;
  /** Rows of the key that were created at or before this instant have expired. */
  readonly expired: Date;
}

interface Responses {
  /** Builds the row that stores a response. */
  keep(body: unknown): KeyedResponse;
  /** Returns the stored body of a response to this request; undefined if there is none. */
  find(): Promise<unknown>;
}

export const CREATED = 201;

/**
 * A request with an `Idempotency-Key` (contract 2.14). Its transaction stays open until the response is known, and
 * stores the response together with what the request creates. So the database contains both or neither.
 */
export class Creation {
  readonly #responses: Responses;
  readonly #body = Promise.withResolvers<unknown>();
  readonly #afterCommit: (() => void)[] = [];
  #committed: Promise<void> | undefined;

  constructor(responses: Responses) {
    this.#responses = responses;
    // Handles a rejection of the body, because a request may fail before its transaction waits for the body.
    this.#body.promise.catch(() => {});
  }

  /**
   * Begins the transaction and returns the result that it hands over before its commit. `hand` resolves with the row
   * that the transaction has to insert.
   */
  run<T>(begin: (hand: (result: T) => Promise<KeyedResponse>) => Promise<void>): Promise<T> {
    const handed = Promise.withResolvers<T>();
    let isHanded = false;
    this.#committed = begin(async (result) => {
      // The response is built from the result of the first try. A retried transaction could have another result, so it
      // is refused.
      if (isHanded) throw unavailable();
      isHanded = true;
      handed.resolve(result);
      return this.#responses.keep(await this.#body.promise);
    });
    this.#committed.catch(handed.reject);
    return handed.promise;
  }

  /** Registers `work` to be called after the commit. */
  afterCommit(work: () => void): void {
    this.#afterCommit.push(work);
  }

  /** Commits the transaction of a request that is answered with 201, together with its response. */
  async created(body: unknown): Promise<void> {
    // The route has not called `creating`, so no transaction would store the key. That is a bug.
    if (this.#committed === undefined)
      throw new Error("The route created a record without calling `creating`.");
    this.#body.resolve(body);
    await this.#committed;
    for (const work of this.#afterCommit) work();
  }

  /**
   * Rolls back the transaction of a failed request. If the request failed because another request with the same key was
   * faster, returns the response that the other one has stored.
   */
  async failed(status: number): Promise<unknown> {
    if (this.#committed !== undefined) {
      this.#body.reject(new Error("The request failed."));
      await this.#committed.catch(() => {});
    }
    return status < 500 ? this.#responses.find().catch(() => undefined) : undefined;
  }
}
