import type { Db } from "../../../db/client.ts";
import type { KeyedRequest, KeyedRequests } from "../../http/idempotency.ts";
import { addMs, type Clock } from "../../lib/clock.ts";
import { errorFields, type Log } from "../../lib/log.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import * as queries from "../queries/keyed-requests.ts";

/** The time in milliseconds for which a key keeps its response (contract 2.14). */
export const KEEP_KEY_MS = 24 * 3_600_000;

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly log: Log;
}

/**
 * Keeps the responses of creating requests, so that a client can repeat a request whose response was lost. Responses
 * are sealed, because some of them show a secret once.
 */
export function createKeyedRequests({ db, clock, box, log }: Deps): KeyedRequests {
  return {
    async begin(request) {
      const now = clock.now();
      if (await queries.claimKey(db, request, now, addMs(now, -KEEP_KEY_MS)))
        return { kind: "new" };
      const row = await queries.keyedRequestOf(db, request);
      // The purge has deleted the key since.
      if (row === undefined) return { kind: "unfinished", digest: request.digest };
      const { digest, sealedResponse } = row;
      if (sealedResponse === null) return { kind: "unfinished", digest };
      const body: unknown = JSON.parse(box.open(sealedResponse, contextOf(request)));
      return { kind: "finished", digest, body };
    },
    finish: async (request, body) => {
      const sealed = box.seal(JSON.stringify(body), contextOf(request));
      // The record exists, so its creation is answered also if the response cannot be stored.
      await queries
        .storeResponse(db, request, sealed)
        .catch((error: unknown) => log.warn("idempotency.not_stored", errorFields(error)));
    },
    forget: (request) =>
      queries
        .deleteKey(db, request)
        .catch((error: unknown) => log.warn("idempotency.not_freed", errorFields(error))),
  };
}

/** The associated data of a response (src/master-key.ts). */
const contextOf = (request: KeyedRequest) => `idempotency:${queries.rowKeyOf(request)}`;
