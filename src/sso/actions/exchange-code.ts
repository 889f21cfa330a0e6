import type { Tx } from "../../../db/client.ts";
import { holdLinkedUser, openLinkedSession } from "../../auth/actions/sign-in-linked.ts";
import type { LoginAnswer } from "../../auth/model.ts";
import type { Call } from "../../http/route.ts";
import { Problem } from "../../lib/problem.ts";
import { hashSecret } from "../../lib/random-secret.ts";
import { s256 } from "../browser.ts";
import { refuseCode, refuseUser } from "../decide.ts";
import { isVerifier, type ExchangeQuery } from "../model.ts";
import { findLiveConnection } from "../queries/connections.ts";
import * as queries from "../queries/sign-ins.ts";
import { Refusal } from "../refusal.ts";
import { auditRefusal, type Attempted, type SsoDeps } from "./deps.ts";

/** `GET /auth/sso/exchange`: the one-time code for a session; every failure is the same 400 (decisions.md 2). */
export async function exchangeCode(
  deps: SsoDeps,
  { code = "", code_verifier: verifier }: ExchangeQuery,
  call: Call,
): Promise<LoginAnswer> {
  const answer = await redeemSsoCode(deps, { code, verifier, call }, (tx, user, now) =>
    openLinkedSession(tx, deps, { user, call, now }),
  );
  if (answer === undefined) throw new Problem("invalid_code");
  return answer;
}

interface Presented {
  readonly code: string;
  readonly verifier: string | undefined;
  readonly call: Call;
}

/** Of a user who is held. A refusal uses the code up all the same. */
type OnUser<T> = (tx: Tx, user: queries.SsoUser, now: Date) => Promise<T | Refusal>;

/** What the code is exchanged for is the caller's; undefined, and an audit row, where it is good for nothing. */
export async function redeemSsoCode<T>(
  deps: Pick<SsoDeps, "db" | "clock">,
  { code, verifier, call }: Presented,
  onUser: OnUser<T>,
): Promise<T | undefined> {
  const attempted: Attempted = { leg: "exchange", call };
  const presented = { codeHash: hashSecret(code), challenge: challengeOf(verifier), attempted };
  return auditRefusal(deps, attempted, async () => {
    const now = deps.clock.now();
    const settled = await deps.db.transaction((tx) => redeem(tx, { ...presented, now }, onUser));
    // Not thrown inside: a code that was shown is used up, right or wrong.
    if (settled instanceof Refusal) throw settled;
    return settled;
  });
}

/** Null without a verifier; what is no verifier matches no challenge. */
function challengeOf(verifier: string | undefined): string | null {
  if (verifier === undefined) return null;
  return isVerifier(verifier) ? s256(verifier) : "";
}

interface Hashed {
  readonly codeHash: string;
  readonly challenge: string | null;
  readonly attempted: Attempted;
  readonly now: Date;
}

async function redeem<T>(
  tx: Tx,
  { codeHash, challenge, attempted, now }: Hashed,
  onUser: OnUser<T>,
): Promise<T | Refusal> {
  const known = await queries.findCode(tx, codeHash);
  const user = known && (await queries.findUser(tx, known.userId));
  if (known === undefined || user === undefined) return new Refusal("unknown_code");
  const { id, companyId } = user;
  attempted.actor = { userId: id, companyId, impersonatorId: null };
  attempted.connectionId = known.connectionId;
  // Before the code: a password reset takes them in this order.
  const held = await holdLinkedUser(tx, user, now);
  const code = (await queries.findCode(tx, codeHash)) ?? known;
  const refusal = refuseCode(code, { challenge, now });
  if (!(await queries.consumeCode(tx, codeHash, now))) return new Refusal("replayed_code");
  if (refusal !== undefined) return new Refusal(refusal);
  if (held !== "held") return new Refusal(held);
  const connection = await findLiveConnection(tx, { id: code.connectionId });
  if (connection === undefined) return new Refusal("unknown_connection");
  const denied = refuseUser(user, connection.companyId);
  if (denied !== undefined) return new Refusal(denied);
  return onUser(tx, user, now);
}
