import { createHash } from "node:crypto";

import type { Tx } from "../../../db/client.ts";
import {
  endClientSession,
  holdPersonInClient,
  openClientSession,
  type ClientSession,
} from "../../auth/actions/client-session.ts";
import type { Call } from "../../http/call.ts";
import { hashSecret } from "../../lib/random-secret.ts";
import { decideRedemption, decideScope } from "../decide.ts";
import type { TokenRequest } from "../grants.ts";
import type { AuthorizationCode, OAuthClient } from "../model.ts";
import { OAuthError } from "../oauth-error.ts";
import {
  findAuthorizationCode,
  holdAuthorizationCode,
  redeemAuthorizationCode,
} from "../queries/codes.ts";
import type { OAuthDeps } from "./deps.ts";

interface Redemption {
  readonly client: OAuthClient;
  readonly request: Extract<TokenRequest, { grant: "authorization_code" }>;
  readonly call: Call;
}

type Redeemed = ClientSession & { readonly scope: string };

/** RFC 6749, 4.1.3. Throws the same `invalid_grant` for a bad code as for one of another client. */
export async function redeemCode(deps: OAuthDeps, redemption: Redemption): Promise<Redeemed> {
  const now = deps.clock.now();
  const redeemed = await deps.db.transaction((tx) => redeem(tx, deps, redemption, now));
  if (redeemed !== undefined) return redeemed;
  throw new OAuthError(
    "invalid_grant",
    "The code is invalid, expired, used, or of another request.",
  );
}

/**
 * Takes the locks in the order of the whole service: user, client, code, family. Answers undefined rather than throw,
 * because the end of a replayed sign-in has to be committed.
 */
async function redeem(
  tx: Tx,
  deps: OAuthDeps,
  { client, request, call }: Redemption,
  now: Date,
): Promise<Redeemed | undefined> {
  const secretHash = hashSecret(request.code);
  const known = await findAuthorizationCode(tx, secretHash);
  if (known === undefined || known.clientId !== client.clientId) return undefined;
  const { grant } = request;
  const user = await holdPersonInClient(tx, { ...known, grant });
  const code = await holdAuthorizationCode(tx, secretHash);
  if (user === undefined || code === undefined) return undefined;
  const { clientId } = client;
  const challenge = request.verifier === undefined ? undefined : challengeOf(request.verifier);
  const shown = { clientId, redirectUri: request.redirectUri, challenge };
  const decision = decideRedemption(code, shown, now);
  if (decision === "replayed") await endReplayed(tx, code, { user, call, at: now });
  if (decision !== "redeem") return undefined;
  // The client may have been narrowed since the user agreed.
  const scope = decideScope(client, code.scope.split(" "));
  if (scope === undefined) return undefined;
  const signIn = { user, method: "authorization_code", client, scope, call, now } as const;
  const session = await openClientSession(tx, deps, signIn);
  if (session === undefined) return undefined;
  await redeemAuthorizationCode(tx, { secretHash, familyId: session.familyId, now });
  return { ...session, scope };
}

async function endReplayed(
  tx: Tx,
  { familyId, clientId }: AuthorizationCode,
  replay: { user: { id: number; companyId: number }; call: Call; at: Date },
): Promise<void> {
  if (familyId === null) return;
  const details = { client_id: clientId };
  await endClientSession(tx, familyId, { ...replay, action: "CODE_REPLAYED", details });
}

/** S256 (RFC 7636, 4.2). */
function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}
