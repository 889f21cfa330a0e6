import type { Db } from "../../db/client.ts";
import type { Authenticator } from "../http/access.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createAuthenticate } from "./actions/authenticate.ts";
import { recordDenial } from "./actions/record-denial.ts";
import { TokenUses } from "./actions/token-uses.ts";
import type { KeyRing } from "./key-ring.ts";

/** Makes what the HTTP edge checks bearer tokens and records denials with. */
export function createAuthenticator(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyRing;
}): Authenticator {
  const uses = new TokenUses(deps);
  return {
    noteUse: (principal, call, route) => uses.note(principal, call, route),
    authenticate: createAuthenticate(deps),
    recordDenial: (principal, call, details) => recordDenial(deps, principal, { call, details }),
  };
}
