import { createHash } from "node:crypto";

import { invalid, Problem } from "../lib/problem.ts";
import { Creation, type KeyedRequest, type KeyedResponse } from "./creation.ts";
import type { Principal } from "./principal.ts";
import type { RequestState } from "./request-state.ts";
import { pathOf } from "./text.ts";

/** The row of a key: the digest of its request, and the response; undefined until release 0.1.0 has stored it. */
interface KeyState {
  readonly digest: string;
  readonly body?: unknown;
}

/** Functions of the database that the HTTP layer needs for keyed requests. */
export interface KeyedRequests {
  /** Returns the state of a key; undefined if the key is free. */
  find(request: KeyedRequest): Promise<KeyState | undefined>;
  /** Makes the row that stores the key with the body of its response. */
  keep(request: KeyedRequest, body: unknown): KeyedResponse;
}

const HEADER = "idempotency-key";
const KEY = /^[\x21-\x7e]{1,255}$/;
/** Begins each digest that has the authority. Those of release 0.1.0 are the SHA-256 of path and body alone. */
const WITH_AUTHORITY = "authority:";

/**
 * Begins a creating request. Returns the body of the response of an earlier request with the same key; undefined if the
 * request has no key or is the first. Throws a 422 if the earlier request had another path, body or authority, and 409
 * `request_unfinished` if that is not known.
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
  // Release 0.1.0 did not store for which authority its response was made, so nobody gets it.
  if (found.digest === sha256(...content)) throw new Problem("request_unfinished");
  if (found.digest !== digest)
    throw invalid({ "Idempotency-Key": ["was used for another request in the last 24 hours"] });
  return found.body;
}

/** The fields of a principal that differ between tokens of the same authority. */
const NO_AUTHORITY: ReadonlySet<string> = new Set([
  "userName",
  "jti",
  "familyId",
  "signedInAt",
  "factorAt",
  "needsStepUp",
] satisfies (keyof Principal)[]);

/** Returns everything of a caller that decides what a response may contain; a new field of the principal belongs to it. */
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
