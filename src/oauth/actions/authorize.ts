import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import { attemptSignIn, type AttemptOutcome } from "../../auth/actions/attempt-sign-in.ts";
import { holdPerson, holdPersonInClient } from "../../auth/actions/client-session.ts";
import type { Call } from "../../http/call.ts";
import { addMs } from "../../lib/clock.ts";
import { hashSecret, newSecret } from "../../lib/random-secret.ts";
import { redeemSsoCode } from "../../sso/actions/exchange-code.ts";
import { SsoRefusal } from "../../sso/refusal.ts";
import { admitsUser } from "../decide.ts";
import { OAuthError } from "../oauth-error.ts";
import {
  deleteAuthorizationCode,
  findAuthorizationCode,
  holdAuthorizationCode,
  insertAuthorizationCode,
} from "../queries/codes.ts";
import type { Authorization } from "./check-authorization.ts";
import type { OAuthDeps } from "./deps.ts";

/** See contract 5.4. */
const CODE_TTL_MS = 60_000;
const GRANT = "authorization_code";
/** How long a user may think about a page. */
export const PAGE_TTL_MS = 10 * 60_000;

/** What a sign-in at the page leads to: the authorization code at once, or the page that asks for consent. */
export interface SignedIn {
  readonly kind: "code" | "consent";
  /** The code itself, or what stands for the sign-in until the user has answered. */
  readonly secret: string;
}

/** Signs in by the password form. A first-party client needs no consent: it is the service itself. */
export function signInAtPage(
  deps: OAuthDeps,
  authorization: Authorization,
  { email, password, call }: { email: string; password: string; call: Call },
): Promise<AttemptOutcome<SignedIn>> {
  const { client } = authorization;
  const admits = (user: { partnerId: number | null }) => admitsUser(client, user);
  const attempt = { email, password, method: "authorization_code", call, admits } as const;
  return attemptSignIn(deps, attempt, async (tx, user, now) => {
    const kind = client.firstParty ? "code" : "consent";
    return { kind, secret: await issue(tx, authorization, { kind, userId: user.id, now }) };
  });
}

/** Signs in by the one-time code of a single sign-on; undefined where that is refused, for whatever reason. */
export function signInByProvider(
  deps: OAuthDeps,
  authorization: Authorization,
  presented: { code: string; verifier: string; call: Call },
): Promise<(SignedIn & { readonly email: string }) | undefined> {
  const { client } = authorization;
  return redeemSsoCode(deps, presented, async (tx, { id: userId, email, partnerId }, now) => {
    if (!admitsUser(client, { partnerId })) return new SsoRefusal("foreign_user");
    const kind = client.firstParty ? "code" : "consent";
    return { kind, email, secret: await issue(tx, authorization, { kind, userId, now }) };
  });
}

/** The answer to the page that asks for consent; `secret` is that of `SignedIn`. */
interface ConsentAnswer {
  readonly secret: string;
  readonly call: Call;
}

/** Issues the code of a user who has agreed; undefined if the sign-in at the page has ended meanwhile. */
export async function grantConsent(
  { db, clock }: OAuthDeps,
  authorization: Authorization,
  { secret, call }: ConsentAnswer,
): Promise<string | undefined> {
  const now = clock.now();
  const secretHash = hashSecret(secret);
  return db.transaction(async (tx) => {
    const known = await findAuthorizationCode(tx, secretHash);
    const user = known && (await holdPersonInClient(tx, { ...known, grant: GRANT }));
    // Read once the user is locked: a password reset may have ended the sign-in in between.
    const pending = await holdAuthorizationCode(tx, secretHash);
    if (user === undefined || pending?.state !== "consent" || pending.expiresAt <= now)
      return undefined;
    // One answer gives one code, however often its form is sent.
    await deleteAuthorizationCode(tx, secretHash);
    // The user agreed to the scope that the page named, whatever the client has been given since.
    const agreed = { ...authorization, scope: pending.scope };
    const code = await issue(tx, agreed, { kind: "code", userId: user.id, now });
    const details = { client_id: pending.clientId, scope: pending.scope };
    const actor = { userId: user.id, companyId: user.companyId, impersonatorId: null };
    await recordAudit(tx, { at: now, action: "CONSENT_GRANTED", actor, call, details });
    return code;
  });
}

export async function denyConsent(
  { db, clock }: OAuthDeps,
  { secret, call }: ConsentAnswer,
): Promise<void> {
  const at = clock.now();
  const secretHash = hashSecret(secret);
  await db.transaction(async (tx) => {
    const pending = await findAuthorizationCode(tx, secretHash);
    const user = pending && (await holdPerson(tx, pending.userId));
    if (user === undefined || !(await deleteAuthorizationCode(tx, secretHash))) return;
    const details = { client_id: pending?.clientId, scope: pending?.scope };
    const actor = { userId: user.id, companyId: user.companyId, impersonatorId: null };
    await recordAudit(tx, { at, action: "CONSENT_DENIED", actor, call, details });
  });
}

/** Stores the code, or the wait for consent, under the hash of a fresh secret. The caller holds the user's row. */
async function issue(
  tx: Tx,
  { client, redirectUri, codeChallenge, scope }: Authorization,
  { kind, userId, now }: { kind: SignedIn["kind"]; userId: number; now: Date },
): Promise<string> {
  const secret = newSecret();
  const isWritten = await insertAuthorizationCode(tx, {
    secretHash: hashSecret(secret),
    state: kind === "code" ? "issued" : "consent",
    clientId: client.clientId,
    userId,
    redirectUri,
    codeChallenge,
    scope,
    issuedAt: now,
    expiresAt: addMs(now, kind === "code" ? CODE_TTL_MS : PAGE_TTL_MS),
  });
  if (!isWritten)
    throw new OAuthError("unauthorized_client", "The client may not use this flow any more.");
  return secret;
}
