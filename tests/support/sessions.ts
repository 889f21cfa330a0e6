import type { RawDb } from "../../db/client.ts";
import { openSession } from "../../src/auth/sign-in/open-session.ts";
import type { SignInMethod } from "../../src/http/principal.ts";
import type { TestApi } from "./api.ts";
import type { FakeClock } from "./clock.ts";
import type { TestUser } from "./tenants.ts";

interface SessionWorld {
  readonly database: { readonly db: RawDb };
  readonly api: TestApi;
  readonly clock: FakeClock;
}

interface SessionOptions {
  readonly clientId?: string | null;
  readonly scope?: string;
  /** The time of the sign-in; now if absent. */
  readonly at?: Date;
}

const requestContext = { requestId: "r", ip: "127.0.0.1", userAgent: null, headers: new Headers() };

/**
 * Opens a session by the same function as the sign-in actions, without their requests. A single sign-on counts as a proof
 * of a second factor, a login does not.
 */
export function sessionOf(
  { database, api, clock }: SessionWorld,
  user: Pick<TestUser, "id" | "companyId">,
  method: SignInMethod,
  { clientId = null, scope = "*", at = clock.now() }: SessionOptions = {},
) {
  const one = { user, method, clientId, scope, requestContext, now: at };
  return database.db.transaction((tx) => openSession(tx, api.deps, one));
}
