import type { Tx } from "../../../db/client.ts";
import { holdPerson } from "../../auth/sign-in/client-session.ts";
import { openOwnSession } from "../../auth/sign-in/open-session.ts";
import { mailAboutSignIn } from "../../auth/sign-in/security-mails.ts";
import type { LoginAnswer } from "../../auth/model.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret } from "../../lib/secrets.ts";
import { s256 } from "../browser.ts";
import { codeError, userError } from "../decide.ts";
import { isVerifier, type ExchangeQuery } from "../model.ts";
import { findLiveConnection } from "../queries/connections.ts";
import * as queries from "../queries/sign-ins.ts";
import { SsoError } from "../urls.ts";
import { auditSsoError, type AttemptedLeg, type SsoDeps } from "./deps.ts";

/**
 * Handles `GET /auth/sso/exchange`: exchanges the one-time code for a session. Every failure gives the same 400
 * (contract 4.13).
 */
export async function exchangeCode(
  deps: SsoDeps,
  { code = "", code_verifier: verifier }: ExchangeQuery,
  requestContext: RequestContext,
): Promise<LoginAnswer> {
  const answer = await redeemSsoCode(
    deps,
    { code, verifier, requestContext },
    async (tx, user, now) => {
      await mailAboutSignIn(tx, deps, { userId: user.id, requestContext, now });
      return openOwnSession(tx, deps, { user, method: "sso", requestContext, now });
    },
  );
  if (answer === undefined) throw new Problem("invalid_code");
  return answer;
}

interface PresentedCode {
  readonly code: string;
  readonly verifier: string | undefined;
  readonly requestContext: RequestContext;
}

/**
 * Callback of `redeemSsoCode`. It runs in the transaction that consumes the one-time code, with the user's row locked.
 * If the callback returns an error, the code is consumed nevertheless.
 */
type OnUser<T> = (tx: Tx, user: queries.SsoUser, now: Date) => Promise<T | SsoError>;

/**
 * Redeems a one-time code of a single sign-on and returns the result of `onUser`. If the code is rejected or `onUser`
 * returns an error, the function writes an audit row and returns undefined.
 */
export async function redeemSsoCode<T>(
  deps: Pick<SsoDeps, "db" | "clock" | "failures">,
  { code, verifier, requestContext }: PresentedCode,
  onUser: OnUser<T>,
): Promise<T | undefined> {
  const attempted: AttemptedLeg = { leg: "exchange", requestContext };
  const presented = { codeHash: hashSecret(code), challenge: challengeOf(verifier), attempted };
  return auditSsoError(deps, attempted, async () => {
    const now = deps.clock.now();
    const settled = await deps.db.transaction((tx) => redeem(tx, { ...presented, now }, onUser));
    // The error is thrown after the commit, because a rejected code is consumed too. Only if the user or the SSO
    // connection is not active, the code is not consumed.
    if (settled instanceof SsoError) throw settled;
    return settled;
  });
}

/**
 * Returns the S256 challenge of a PKCE verifier, or null without a verifier. Returns the empty string for a malformed
 * verifier, because the stored challenge of a code is never empty.
 */
function challengeOf(verifier: string | undefined): string | null {
  if (verifier === undefined) return null;
  return isVerifier(verifier) ? s256(verifier) : "";
}

interface HashedCode {
  readonly codeHash: string;
  readonly challenge: string | null;
  readonly attempted: AttemptedLeg;
  readonly now: Date;
}

async function redeem<T>(
  tx: Tx,
  { codeHash, challenge, attempted, now }: HashedCode,
  onUser: OnUser<T>,
): Promise<T | SsoError> {
  const known = await queries.findCode(tx, codeHash);
  const user = known && (await queries.findUser(tx, known.userId));
  if (known === undefined || user === undefined) return new SsoError("unknown_code");
  const { id, companyId } = user;
  attempted.actor = { userId: id, companyId, impersonatorId: null };
  attempted.connectionId = known.connectionId;
  // The user is locked before the one-time code, because a password reset takes the locks in this order.
  const person = await holdPerson(tx, id);
  const code = (await queries.findCode(tx, codeHash)) ?? known;
  if (person === undefined) return new SsoError("inactive_user");
  const connection = await findLiveConnection(tx, { id: known.connectionId });
  if (connection === undefined) return new SsoError("unknown_connection");
  const error = codeError(code, { challenge, now });
  if (!(await queries.consumeCode(tx, codeHash, now))) return new SsoError("replayed_code");
  if (error !== undefined) return new SsoError(error);
  const denied = userError(user, connection.companyId);
  if (denied !== undefined) return new SsoError(denied);
  return onUser(tx, user, now);
}
