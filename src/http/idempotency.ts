import { createHash } from "node:crypto";

import { invalid, Problem } from "../lib/problem.ts";
import type { Principal } from "./principal.ts";
import type { RequestState } from "./request-state.ts";
import { pathOf } from "./text.ts";

/** A creating request that its client may repeat with the same `Idempotency-Key` (contract 2.14). */
export interface KeyedRequest {
  /** The user of the token; each user has keys of its own. */
  readonly userId: number;
  readonly key: string;
  /** The SHA-256 of path and body in hexadecimal digits. */
  readonly digest: string;
}

/** The state of a key before a request: new, in use by a request that has not finished, or with a stored response. */
type KeyState =
  | { readonly kind: "new" }
  | { readonly kind: "unfinished"; readonly digest: string }
  | { readonly kind: "finished"; readonly digest: string; readonly body: unknown };

/** Functions of the database that the HTTP layer needs for keyed requests. */
export interface KeyedRequests {
  /** Claims the key of a request, unless the key is in use; returns its state before. */
  begin(request: KeyedRequest): Promise<KeyState>;
  /** Stores the body of the response with status 201. */
  finish(request: KeyedRequest, body: unknown): Promise<void>;
  /** Frees the key of a request that was refused. */
  forget(request: KeyedRequest): Promise<void>;
}

const HEADER = "idempotency-key";
const KEY = /^[\x21-\x7e]{1,255}$/;
const CREATED = 201;

/**
 * Begins a creating request. Returns the body of the response of an earlier request with the same key; undefined if the
 * request has no key or is the first. Throws a 422 if the earlier request had another path or body, and 409
 * `request_unfinished` if it has not finished.
 */
export function beginKeyed(
  keyed: KeyedRequests,
  request: Request,
  state: RequestState,
): Promise<unknown> | undefined {
  const key = request.headers.get(HEADER);
  if (key === null || request.method !== "POST" || state.principal === undefined) return undefined;
  return begin(keyed, { request, state, principal: state.principal, key });
}

async function begin(
  keyed: KeyedRequests,
  one: {
    readonly request: Request;
    readonly state: RequestState;
    readonly principal: Principal;
    readonly key: string;
  },
): Promise<unknown> {
  const { request, state, principal, key } = one;
  if (!KEY.test(key))
    throw invalid({ "Idempotency-Key": ["must be 1 to 255 visible ASCII characters"] });
  const hash = createHash("sha256")
    .update(`${pathOf(request)}\n`)
    .update(state.raw);
  const attempt = { userId: principal.userId, key, digest: hash.digest("hex") };
  const found = await keyed.begin(attempt);
  if (found.kind === "new") {
    state.keyed = {
      // Only a refusal proves that nothing was written. After any other failure the key stays in use.
      ended: (status, body) => {
        if (status === CREATED) return keyed.finish(attempt, body);
        return status < 500 ? keyed.forget(attempt) : undefined;
      },
    };
    return undefined;
  }
  if (found.digest !== attempt.digest)
    throw invalid({ "Idempotency-Key": ["was used for another request in the last 24 hours"] });
  if (found.kind === "unfinished") throw new Problem("request_unfinished");
  return found.body;
}
