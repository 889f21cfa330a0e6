import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Call } from "../../http/call.ts";
import type { Config } from "../../lib/config.ts";
import type { KeyRing } from "../key-ring.ts";
import type { SignInMethod } from "../../http/principal.ts";
import type { LoginAnswer } from "../model.ts";
import { insertAuthenticationEvent } from "../queries/sessions.ts";
import { issueToken, type IssuedToken } from "./issue-token.ts";
import { readContext } from "./session-context.ts";

export interface SessionDeps {
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

interface SignIn {
  readonly user: { readonly id: number; readonly companyId: number };
  readonly method: SignInMethod;
  readonly clientId: string | null;
  readonly scope: string;
  readonly call: Call;
  readonly now: Date;
}

/** Opens a session of the service's own pages; answers what they show of the user (contract 4.6). */
export async function openOwnSession(
  tx: Tx,
  deps: SessionDeps,
  signIn: Omit<SignIn, "clientId" | "scope">,
): Promise<LoginAnswer> {
  const { token } = await openSession(tx, deps, { ...signIn, clientId: null, scope: "*" });
  const { context, locationCount } = await readContext(tx, signIn.user.id);
  const fresh = { token, token_type: "Bearer", expires_in: deps.config.accessTokenTtlS } as const;
  return { ...fresh, ...context, location_count: locationCount };
}

/** Records a sign-in and issues its access token, the first of its family. */
export async function openSession(
  tx: Tx,
  deps: SessionDeps,
  { user, method, clientId, scope, call, now }: SignIn,
): Promise<IssuedToken & { familyId: string }> {
  const familyId = ulid(now.getTime());
  const { ip, userAgent } = call;
  await insertAuthenticationEvent(tx, {
    id: familyId,
    userId: user.id,
    method,
    clientId,
    ip,
    userAgent,
    at: now,
  });
  const issued = await issueToken(tx, deps.keys, {
    kind: "access",
    userId: user.id,
    familyId,
    clientId,
    impersonatorId: null,
    scope,
    ttlS: deps.config.accessTokenTtlS,
    now,
  });
  await recordAudit(tx, {
    at: now,
    action: "AUTH_LOGIN",
    actor: { userId: user.id, companyId: user.companyId, impersonatorId: null },
    call,
    details: { method, jti: issued.jti },
  });
  return { ...issued, familyId };
}
