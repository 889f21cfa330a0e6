import type { Db } from "../../db/client.ts";
import type { Edge } from "../http/serve.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createAuthenticate } from "./actions/authenticate.ts";
import { recordDenial } from "./actions/record-denial.ts";
import type { KeyRing } from "./key-ring.ts";

/** What the HTTP edge asks of sign-in. */
export function createEdge(deps: { db: Db; clock: Clock; log: Log; keys: KeyRing }): Edge {
  return {
    log: deps.log,
    authenticate: createAuthenticate(deps),
    recordDenial: (principal, call, details) => recordDenial(deps, principal, { call, details }),
  };
}
