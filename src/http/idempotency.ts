import { createHash } from "node:crypto";

import { invalid, Problem } from "../lib/problem.ts";
import { Creation, type KeyedRequest, type KeyedResponse } from "./creation.ts";
import type { Principal } from "./principal.ts";
import type { RequestState } from "./request-state.ts";
import { pathOf } from "./text.ts";

/**
 * The row of an `Idempotency-Key`: the digest of its request, and the body of the response. `body` is undefined while a
 * request of release 0.1.0 is running.
 */
interface KeyState {
  readonly digest: string;
  readonly body?: unknown;
}

/** Database functions that the HTTP layer needs for keyed requests. */
export interface KeyedRequests {
  /** Returns the state of a key; undefined if the key is free. */
  find(request: KeyedRequest): Promise<KeyState | undefined>;
  /** Builds the row that stores the key with the body of its response. */
  keep(request: KeyedRequest, body: unknown): KeyedResponse;
}

const HEADER = "idempotency-key";
const KEY = /^[\x21-\x7e]{1,255}$/;
/** Prefix of digests that include the authority. Digests of release 0.1.0 are the SHA-256 of path and body alone. */
const WITH_AUTHORITY = "authority:";

/**
 * Begins a request to a route that creates something. Returns the stored body if an earlier request with the same key
 * was answered; undefined if the request has no key or is the first one. Throws a 422 if the earlier request had
 * another path, body or authority, and a 409 `request_unfinished` if the authority of the earlier request is not known.
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
  const content = [`${pathOf(request)}\n`, state.rawBody.bytes];
  const digest = WITH_AUTHORITY + sha256(authorityOf(principal), "\n", ...content);
  const attempt = { userId: principal.userId, key, digest };
  const found = await keyed.find(attempt);
  if (found === undefined) {
    state.requestContext.creation = new Creation({
      keep: (body) => keyed.keep(attempt, body),
      find: async () => {
        const faster = await keyed.find(attempt);
        return faster?.digest === digest ? faster.body : undefined;
      },
    });
    return undefined;
  }
  // Release 0.1.0 did not store the authority for which it built the response, so the response is returned to nobody.
  if (found.digest === sha256(...content)) throw new Problem("request_unfinished");
  if (found.digest !== digest)
    throw invalid({ "Idempotency-Key": ["was used for another request in the last 24 hours"] });
  return found.body;
}

/** The fields of a principal that may differ between two tokens with the same authority. */
const NO_AUTHORITY: ReadonlySet<string> = new Set([
  "userName",
  "jti",
  "familyId",
  "signedInAt",
  "factorAt",
  "needsStepUp",
] satisfies (keyof Principal)[]);

/**
 * Returns all fields of a caller that decide what a response may contain. A new field of the principal is included
 * automatically.
 */
function authorityOf(principal: Principal): string {
  const fields = Object.entries(principal)
    .filter(([name]) => !NO_AUTHORITY.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(fields, (_name, value: unknown) =>
    value instanceof Set ? [...value].map(String).toSorted((a, b) => (a < b ? -1 : 1)) : value,
  );
}

function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}
