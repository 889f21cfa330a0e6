import type { Db, Tx } from "../../../db/client.ts";
import type { KeyedRequest } from "../../http/creation.ts";
import type { KeyedRequests } from "../../http/idempotency.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import * as queries from "../queries/keyed-requests.ts";

/** The time in milliseconds for which a key keeps its response (contract 2.14). */
export const KEEP_KEY_MS = 24 * 3_600_000;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
}

const expiredBefore = (now: Date): Date => addMs(now, -KEEP_KEY_MS);

/**
 * Keeps the responses of creating requests, so that a client can repeat a request whose response was lost. Responses
 * are sealed, because some of them show a secret once.
 */
export function createKeyedRequests({ db, clock, box }: Deps): KeyedRequests {
  return {
    async find(request) {
      const row = await queries.keyedRequestOf(db, request, expiredBefore(clock.now()));
      if (row === undefined) return undefined;
      const { digest, sealedResponse } = row;
      // A row of another digest may be sealed for anybody, and its response is not needed.
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

/** The associated data of a response (src/master-key.ts). */
const contextOf = (request: KeyedRequest) => `idempotency:${queries.rowKeyOf(request)}`;

/** A request that may be one of several with the same `Idempotency-Key`. */
interface Creating {
  readonly requestContext: Pick<RequestContext, "creation">;
}

/** Runs the transaction of a creating action. That of a request with an `Idempotency-Key` is committed with its response. */
export function creating<T>(
  db: Db,
  { requestContext: { creation } }: Creating,
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

/** Does what follows the commit of `creating`, such as a wake of the dispatcher. */
export function afterCreating({ requestContext: { creation } }: Creating, work: () => void): void {
  if (creation === undefined) work();
  else creation.afterCommit(work);
}
