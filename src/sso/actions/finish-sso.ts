import { Value } from "@sinclair/typebox/value";

import type { Tx } from "../../../db/client.ts";
import { mailAboutOwner } from "../../auth/sign-in/security-mails.ts";
import { recordAudit } from "../../audit/queries.ts";
import { holdPerson } from "../../auth/sign-in/client-session.ts";
import { hasEmail, resolveEmail } from "../../auth/passwords/email-queries.ts";
import { isUlid } from "../../http/ids.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { addMs } from "../../lib/clock.ts";
import { isMailAddress } from "../../lib/email.ts";
import { hashSecret } from "../../lib/secrets.ts";
import { displayName } from "../../tenants/model.ts";
import { newOneTimeSecret, flowSecrets } from "../browser.ts";
import {
  candidateError,
  consumesState,
  newcomerError,
  newUserError,
  stateError,
  userError,
} from "../decide.ts";
import { domainOf, isSilent, isVerified, withUserinfo } from "../person.ts";
import { errorOf, type Identity, redeemAtProvider, type Redeemed } from "../redeem-code.ts";
import type { CallbackQuery } from "../model.ts";
import { callbackUri, errorUrl, SsoError, withCode } from "../urls.ts";
import {
  findLiveConnection,
  shareConnection,
  type LiveConnection,
} from "../queries/connections.ts";
import * as queries from "../queries/sign-ins.ts";
import { auditSsoError, clientSecretContext, type AttemptedLeg, type SsoDeps } from "./deps.ts";

/** Lifetime in ms of the one-time code of a single sign-on (contract 4.13). */
const CODE_TTL_MS = 60_000;

interface ProviderAnswer {
  /** The id of the SSO connection, from the path of the callback. */
  readonly connectionId: string;
  readonly query: CallbackQuery;
  /** The secret in the browser's cookie; undefined without a cookie. */
  readonly browser: string | undefined;
}

/**
 * Handles `GET /auth/sso/callback/{connection}`: processes the identity provider's response and returns the URL to
 * which the browser is redirected.
 */
export async function finishSso(
  deps: SsoDeps,
  answered: ProviderAnswer,
  requestContext: RequestContext,
): Promise<string> {
  const { connectionId } = answered;
  const attempted: AttemptedLeg = { leg: "callback", requestContext };
  if (isUlid(connectionId)) attempted.connectionId = connectionId;
  let returnTo: string | undefined;
  const location = await auditSsoError(deps, attempted, async () => {
    const { state, connection } = await claimState(deps, answered);
    ({ returnTo } = state);
    if (connection === undefined) throw new SsoError("unknown_connection");
    const code = await readAnswer(deps, connection, answered.query);
    const redeemed = await redeem(deps, connection, { answered, code });
    return admit(deps, { connection, redeemed, state, requestContext, attempted });
  });
  return location ?? errorUrl(deps.config, returnTo);
}

/**
 * Consumes the state of a single sign-on. A state is valid once, in the browser that received it, at the callback of
 * its own SSO connection. If that SSO connection, its company or the company's partner is not active, a valid state is
 * not consumed, and the returned `connection` is undefined.
 */
async function claimState(deps: SsoDeps, answered: ProviderAnswer) {
  const { query, browser, connectionId } = answered;
  const now = deps.clock.now();
  const stateHash = hashSecret(query.state ?? "");
  const browserHash = browser === undefined ? null : hashSecret(browser);
  const claimed = await deps.db.transaction(async (tx) => {
    const state = await queries.holdState(tx, stateHash);
    const error = stateError(state, { connectionId, browserHash, now });
    const isValid = error === undefined;
    const connection = isValid ? await findLiveConnection(tx, { id: connectionId }) : undefined;
    if (consumesState(error) && (!isValid || connection !== undefined))
      await queries.consumeState(tx, stateHash, now);
    return { state, connection, error };
  });
  // The error is thrown after the commit, because a throw inside the transaction would undo the consumption of the
  // state.
  const { state, connection, error } = claimed;
  if (error !== undefined || state === undefined) throw new SsoError(error ?? "unknown_state");
  return { state, connection };
}

/**
 * Validates the identity provider's response (RFC 6749, 4.1.2 and RFC 9207, 2.4) and returns its authorization code.
 * The issuer is checked before any other parameter.
 */
async function readAnswer(
  { providers }: SsoDeps,
  { issuer }: LiveConnection,
  { iss, error, code }: CallbackQuery,
): Promise<string> {
  const { sendsIss } = await providers.metadata(issuer);
  if (iss === undefined ? sendsIss : iss !== issuer) throw new SsoError("wrong_response_issuer");
  if (error !== undefined) throw new SsoError("provider_error", errorOf(error));
  if (code === undefined || code === "") throw new SsoError("no_code");
  return code;
}

function redeem(
  deps: SsoDeps,
  connection: LiveConnection,
  { answered, code }: { answered: ProviderAnswer; code: string },
): Promise<Redeemed> {
  const { browser = "", query } = answered;
  return redeemAtProvider(deps.providers, {
    issuer: connection.issuer,
    clientId: connection.clientId,
    clientSecret: deps.box.open(connection.sealedClientSecret, clientSecretContext(connection)),
    redirectUri: callbackUri(deps.config, connection.id),
    code,
    ...flowSecrets(browser, query.state ?? ""),
    now: deps.clock.now(),
  });
}

interface Admission {
  readonly connection: LiveConnection;
  readonly redeemed: Redeemed;
  readonly state: queries.StateRow;
  readonly requestContext: RequestContext;
  readonly attempted: AttemptedLeg;
}

/**
 * Finds or creates the user of the identity, and links the user to the identity at the first sign-in. Then stores the
 * one-time code for the exchange and returns the URL that contains it.
 */
async function admit(deps: SsoDeps, admission: Admission): Promise<string> {
  const { connection, redeemed, state, attempted } = admission;
  const { subject } = redeemed.identity;
  const link = { issuer: connection.issuer, subject };
  const known = await queries.findLinkedUser(deps.db, link);
  const identity =
    known === undefined ? await withEmail(deps, connection, redeemed) : redeemed.identity;
  // The clock is read again: the identity provider may have been slow, and the lifetime of the one-time code begins
  // now.
  const now = deps.clock.now();
  const code = newOneTimeSecret();
  await deps.db.transaction(async (tx) => {
    const user = known ?? (await findNewcomer(tx, connection, { deps, identity, attempted, now }));
    attempted.actor = actorOf(user);
    const person = await holdPerson(tx, user.id);
    const error = userError(user, connection.companyId);
    if (error !== undefined) throw new SsoError(error);
    if (person === undefined) throw new SsoError("inactive_user");
    // The identity provider's response was validated against the SSO connection as `claimState` read it. So the sign-in
    // fails if the SSO connection has changed since then.
    if (!(await shareConnection(tx, connection.id, connection.updatedAt)))
      throw new SsoError("unknown_connection");
    if (known === undefined) await linkUser(tx, admission, { user, now });
    // The link is read again. `unlinkIdentity` locks the user too, so it either has committed already, or it waits and
    // then consumes the code that is inserted below.
    else if ((await queries.findLinkedUser(tx, link))?.id !== user.id)
      throw new SsoError("unlinked");
    await queries.insertCode(tx, {
      codeHash: hashSecret(code),
      userId: user.id,
      connectionId: connection.id,
      codeChallenge: state.codeChallenge,
      createdAt: now,
      expiresAt: addMs(now, CODE_TTL_MS),
    });
  });
  return withCode(state.returnTo, code);
}

/**
 * Requests userinfo if the id_token lacks the email or the statement whether it is verified. If the userinfo endpoint
 * does not respond, its error is ignored if the SSO connection trusts the email of the id_token. If a user has the
 * email, the email is returned in that user's spelling.
 */
async function withEmail(
  { db }: SsoDeps,
  connection: LiveConnection,
  { identity, readUserinfo }: Redeemed,
): Promise<Identity> {
  let whole = identity;
  if (isSilent(identity)) {
    const said = await readUserinfo();
    if (!(said instanceof SsoError)) whole = withUserinfo(identity, said);
    else if (!isVerified(connection, identity)) throw said;
  }
  const { email } = whole;
  return email === undefined ? whole : { ...whole, email: await resolveEmail(db, email) };
}

/**
 * Finds the user with the verified email, or creates the user if the SSO connection allows that. The domain of the
 * email must be one of the SSO connection, and the user must belong to its company (contract 4.13).
 */
async function findNewcomer(
  tx: Tx,
  connection: LiveConnection,
  one: { deps: SsoDeps; identity: Identity; attempted: AttemptedLeg; now: Date },
): Promise<queries.SsoUser> {
  const { issuer, companyId } = connection;
  const { identity, attempted } = one;
  const { email } = identity;
  const own = domainOf(connection, email);
  const error = newcomerError({
    hasEmail: email !== undefined,
    isVerified: isVerified(connection, identity),
    isOwnDomain: own !== undefined,
  });
  if (error !== undefined || email === undefined) throw new SsoError(error ?? "no_email");
  const find = () => queries.findCandidate(tx, { email, issuer });
  let candidate = await find();
  if (candidate === undefined && connection.newUserRole !== null) {
    if (own?.provedAt == null) throw new SsoError("unproved_domain");
    await createNewcomer(tx, connection, { ...one, email });
    candidate = await find();
  }
  if (candidate !== undefined) attempted.actor = actorOf(candidate);
  const denied = candidateError(candidate, companyId);
  if (denied !== undefined || candidate === undefined) throw new SsoError(denied ?? "unknown_user");
  return candidate;
}

/**
 * Creates a user without a password, with the role and stores of the SSO connection. Email and name must meet the rules
 * of `POST /admin/users`. Writes nothing if another sign-in has created the user since the search for the email.
 */
async function createNewcomer(
  tx: Tx,
  { id: connectionId, companyId, newUserRole: role, newUserStoreIds }: LiveConnection,
  one: { deps: SsoDeps; identity: Identity; attempted: AttemptedLeg; email: string; now: Date },
): Promise<void> {
  const { deps, identity, attempted, email, now } = one;
  if (role === null) return;
  const name = identity.name?.replaceAll(/[\p{Cc}\p{Cs}]/gu, "").trim() || email;
  const error = newUserError({
    isAddress: isMailAddress(email),
    isName: Value.Check(displayName, name),
    isTaken: await hasEmail(tx, email),
  });
  if (error !== undefined) throw new SsoError(error);
  const storeIds = await queries.storesOf(tx, companyId, newUserStoreIds);
  if (role === "location_user" && storeIds.length === 0) throw new SsoError("no_store");
  const user = { companyId, email, name, role, createdAt: now };
  const userId = await queries.createUser(tx, user, storeIds);
  if (userId === undefined) return;
  await recordAudit(tx, {
    at: now,
    action: "SSO_USER_CREATED",
    actor: { userId, companyId, impersonatorId: null },
    requestContext: attempted.requestContext,
    details: { connection_id: connectionId, role },
  });
  await mailAboutOwner(tx, deps, {
    owner: { id: userId, name, companyId },
    role,
    actor: null,
    now,
  });
}

async function linkUser(
  tx: Tx,
  { connection, redeemed, requestContext }: Admission,
  { user, now }: { user: queries.SsoUser; now: Date },
): Promise<void> {
  const { id: connectionId, issuer } = connection;
  const { subject } = redeemed.identity;
  const identity = { issuer, subject, userId: user.id, connectionId, now };
  if (!(await queries.insertIdentity(tx, identity))) throw new SsoError("other_subject");
  await recordAudit(tx, {
    at: now,
    action: "SSO_LINKED",
    actor: actorOf(user),
    requestContext,
    details: { connection_id: connectionId, issuer },
  });
}

function actorOf({ id, companyId }: queries.SsoUser) {
  return { userId: id, companyId, impersonatorId: null };
}
