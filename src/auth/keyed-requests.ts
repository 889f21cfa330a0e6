import type { Db, Tx } from "../../db/client.ts";
import type { KeyedRequest } from "../http/creation.ts";
import type { KeyedRequests } from "../http/idempotency.ts";
import type { RequestContext } from "../http/request-context.ts";
import { addMs, type Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import type { SecretBox } from "../lib/secrets.ts";
import * as queries from "./queries.ts";

/** Time in ms for which the response to a request with an `Idempotency-Key` is stored (contract 2.14). */
export const KEEP_KEY_MS = 24 * 3_600_000;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
}

const expiredBefore = (now: Date): Date => addMs(now, -KEEP_KEY_MS);

/**
 * Stores the responses of requests that create something, so that a client can repeat a request whose response was
 * lost. Responses are sealed, because some of them contain a secret that is shown only once.
 */
export function createKeyedRequests({ db, clock, box }: Deps): KeyedRequests {
  return {
    async find(request) {
      const row = await queries.keyedRequestOf(db, request, expiredBefore(clock.now()));
      if (row === undefined) return undefined;
      const { digest, sealedResponse } = row;
      // The response in a row with another digest is not opened, because its request may have had another path, body or
      // authority.
      if (sealedResponse === null || digest !== request.digest) return { digest };
      return { digest, body: JSON.parse(box.open(sealedResponse, contextOf(request))) };
    },
    keep(request, body) {
      const createdAt = clock.now();
      const sealedResponse = box.seal(JSON.stringify(body), contextOf(request));
      return { ...request, sealedResponse, createdAt, expired: expiredBefore(createdAt) };
    },
  };
}

/** Returns the associated data with which a response is sealed; src/master-key.ts builds the same text. */
const contextOf = (request: KeyedRequest) => `idempotency:${queries.rowKeyOf(request)}`;

/** A request that may carry an `Idempotency-Key`. */
interface CreatingRequest {
  readonly requestContext: Pick<RequestContext, "creation">;
}

/**
 * Runs the transaction of a request that creates something. If the request has an `Idempotency-Key`, its response is
 * stored in the same transaction.
 */
export function creating<T>(
  db: Db,
  { requestContext: { creation } }: CreatingRequest,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  if (creation === undefined) return db.transaction(work);
  return creation.run((hand) =>
    db.transaction(async (tx) => {
      const response = await hand(await work(tx));
      if (!(await queries.insertResponse(tx, response))) throw new Problem("request_unfinished");
    }),
  );
}

/** Runs `work` after the transaction of `creating` has committed, for example to wake the dispatcher. */
export function afterCreating(
  { requestContext: { creation } }: CreatingRequest,
  work: () => void,
): void {
  if (creation === undefined) work();
  else creation.afterCommit(work);
}
