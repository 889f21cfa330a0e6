import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { isUlid } from "../../http/ids.ts";
import { OWN_BRAND } from "../../lib/branded-mail.ts";
import { addMs, type Clock, isoInstant } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { hashSecret } from "../../lib/secrets.ts";
import {
  type CredentialBody,
  type FactorsAnswer,
  type NewFactorAnswer,
  type ProofBody,
  showFactor,
} from "./model.ts";
import {
  FRESH_MS,
  isFresh,
  MOST_FACTORS,
  newRecoveryCode,
  newTotpSecret,
  plainRecoveryCode,
  RECOVERY_CODES,
  requiresFactor,
  SECRET_TTL_MS,
  stepOfCode,
  totpUri,
} from "./rules.ts";
import { creationOptions, verifyCreated } from "./passkeys.ts";
import { recordAudit } from "../../audit/queries.ts";
import * as queries from "./queries.ts";
import { deleteToken } from "../tokens/queries.ts";
import { findMailed, findPerson } from "../user-queries.ts";
import { recordAccessDenied } from "../access/access-denied.ts";
import { holdCaller } from "../sign-in/open-session.ts";
import {
  passkeyOf,
  passkeyOptions,
  problemOfProof,
  proveFactor,
  consumeChallenge,
  totpContext,
} from "./prove-factor.ts";
import { type FinishDeps, openProved } from "./second-step.ts";
import { mailAboutFactor } from "../sign-in/security-mails.ts";

export interface OwnFactorDeps extends FinishDeps {
  readonly config: FinishDeps["config"] & Pick<Config, "operatorsRequireSecondFactor">;
}

interface FactorReadDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: Pick<Config, "operatorsRequireSecondFactor">;
}

/** Lists the factors of a user: the caller's own, or for an operator, who passes no `factorAt`, those of any user. */
export async function listFactors(
  { db, clock, config }: FactorReadDeps,
  { userId, factorAt }: Pick<Principal, "userId" | "factorAt">,
): Promise<FactorsAnswer> {
  const [rows, state] = await Promise.all([
    queries.factorsOf(db, userId),
    queries.factorStateOf(db, userId),
  ]);
  return {
    factors: rows.map(showFactor),
    recovery_codes_left: state.codesLeft,
    is_required: requiresFactor(config, state),
    fresh_until:
      factorAt !== null && isFresh(factorAt, clock.now())
        ? isoInstant(addMs(factorAt, FRESH_MS))
        : null,
  };
}

/** Handles `POST …/totp`: generates the secret of an authenticator app. `confirmTotp` stores it later. */
export async function beginTotp(deps: OwnFactorDeps, { principal }: Caller) {
  const now = deps.clock.now();
  const { userId, jti } = principal;
  return deps.db.transaction(async (tx) => {
    await holdForChange(tx, principal, { now, adds: "totp" });
    const secret = newTotpSecret();
    const sealedSecret = deps.box.seal(secret, newTotpContext(jti));
    await queries.saveChallenge(tx, { jti, sealedSecret, secretAt: now });
    const { issuer, user } = await partiesOf(tx, userId);
    return { secret, uri: totpUri(secret, { issuer, label: user.email }) };
  });
}

/** Returns the associated data with which the secret of an app that is being set up is sealed. */
const newTotpContext = (jti: string): string => `new-totp:${jti}`;

/** Handles `POST …/totp/confirm`: stores the app after the user has entered a correct code of it. */
export async function confirmTotp(
  deps: OwnFactorDeps,
  caller: Caller,
  { code, name = "Authenticator app" }: { readonly code: string; readonly name?: string },
): Promise<NewFactorAnswer> {
  const now = deps.clock.now();
  const { userId, jti } = caller.principal;
  return deps.db.transaction(async (tx) => {
    await holdForChange(tx, caller.principal, { now, adds: "totp" });
    const { sealedSecret = null, secretAt = null } = (await queries.findChallenge(tx, jti)) ?? {};
    const isOpen = secretAt !== null && addMs(secretAt, SECRET_TTL_MS) > now;
    const secret = sealedSecret === null ? "" : deps.box.open(sealedSecret, newTotpContext(jti));
    const step = isOpen ? stepOfCode(code, { secret, lastStep: null }, now) : undefined;
    if (step === undefined)
      throw invalid({ code: ["is wrong, or the secret has expired; request a new secret"] });
    await queries.saveChallenge(tx, { jti, sealedSecret: null, secretAt: null });
    const id = ulid(now.getTime());
    const kept = deps.box.seal(secret, totpContext({ userId, id }));
    const own = { id, userId, kind: "totp", name, createdAt: now, lastUsedAt: now } as const;
    return addFactor(tx, deps, caller, { ...own, sealedSecret: kept, lastStep: step });
  });
}

/** Handles `POST …/passkeys/creation-options`. */
export async function beginPasskey(deps: OwnFactorDeps, { principal }: Caller) {
  const now = deps.clock.now();
  const { userId, jti } = principal;
  return deps.db.transaction(async (tx) => {
    const { factors } = await holdForChange(tx, principal, { now, adds: "passkey" });
    const { issuer: rpName, user } = await partiesOf(tx, userId);
    const known = factors.flatMap((row) => passkeyOf(row) ?? []);
    const options = await creationOptions(deps.config, { user, rpName, known });
    await queries.saveChallenge(tx, { jti, passkeyChallenge: options.challenge, passkeyAt: now });
    return options;
  });
}

/** Handles `POST …/passkeys`: stores a passkey that the browser has created. */
export async function addPasskey(
  deps: OwnFactorDeps,
  caller: Caller,
  { credential, name = "Passkey" }: { readonly credential: CredentialBody; readonly name?: string },
): Promise<NewFactorAnswer> {
  const now = deps.clock.now();
  const { userId, jti } = caller.principal;
  return deps.db.transaction(async (tx) => {
    await holdForChange(tx, caller.principal, { now, adds: "passkey" });
    const challenge = await consumeChallenge(tx, jti, now);
    const passkey = challenge && (await verifyCreated(deps.config, challenge, credential));
    if (!passkey)
      throw invalid({
        credential: ["does not match the last options of this token; request new options"],
      });
    const own = { id: ulid(now.getTime()), userId, kind: "passkey", name, createdAt: now } as const;
    return addFactor(tx, deps, caller, {
      ...own,
      ...passkey,
      transports: [...passkey.transports],
    });
  });
}

/** Handles `POST …/passkeys/request-options`. */
export async function passkeyRequest(deps: OwnFactorDeps, { principal }: Caller) {
  const now = deps.clock.now();
  const { userId, jti } = principal;
  return deps.db.transaction(async (tx) => {
    await holdCaller(tx, principal);
    const options = await passkeyOptions(tx, deps, { userId, jti, now });
    if (options === undefined) throw new Problem("not_found");
    return options;
  });
}

/**
 * Loads a factor of the caller. Throws 404 for an unknown id, and 403 with an AUTHZ_DENIED row for a factor of another
 * user.
 */
export async function findOwnFactor(
  deps: { readonly db: Db; readonly clock: Clock },
  { principal, requestContext }: Caller,
  id: string,
): Promise<queries.FactorRow> {
  const row = isUlid(id) ? await queries.findFactor(deps.db, id) : undefined;
  if (row === undefined) throw new Problem("not_found");
  if (row.userId === principal.userId) return row;
  const details = { factor_id: id, reason: "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

/** Handles `DELETE …/{id}`. Deleting the last factor also deletes the recovery codes. */
export async function removeFactor(
  deps: OwnFactorDeps,
  { principal: actor, requestContext }: Caller,
  { id, kind, name }: queries.FactorRow,
): Promise<void> {
  const now = deps.clock.now();
  const { userId } = actor;
  await deps.db.transaction(async (tx) => {
    const { factors, state } = await holdForChange(tx, actor, { now });
    const isLast = factors.every((one) => one.id === id);
    if (isLast && requiresFactor(deps.config, state)) throw new Problem("last_factor");
    if (!(await queries.deleteFactor(tx, userId, id))) throw new Problem("not_found");
    if (isLast) await queries.deleteRecoveryCodes(tx, userId);
    const details = { factor_id: id, kind };
    const action = "SECOND_FACTOR_REMOVED";
    await recordAudit(tx, { at: now, action, actor, requestContext, details });
    await mailAboutFactor(tx, deps, {
      userId,
      change: "removed",
      facts: [["Second factor", name]],
      requestContext,
      now,
    });
  });
}

/** Handles `POST …/recovery-codes`: replaces the recovery codes of a user. */
export async function renewRecoveryCodes(
  deps: OwnFactorDeps,
  { principal: actor, requestContext }: Caller,
): Promise<readonly string[]> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    await holdCaller(tx, actor);
    if ((await queries.factorsOf(tx, actor.userId)).length === 0)
      throw new Problem("no_second_factor");
    await holdForChange(tx, actor, { now });
    const codes = await makeRecoveryCodes(tx, actor.userId);
    const action = "RECOVERY_CODES_MADE";
    await recordAudit(tx, { at: now, action, actor, requestContext, details: {} });
    const { userId } = actor;
    const change = { userId, change: "codesMade", facts: [], requestContext, now } as const;
    await mailAboutFactor(tx, deps, change);
    return codes;
  });
}

/**
 * Handles `POST …/step-up`: verifies a proof, which makes the session fresh. Returns the instant until which it is
 * fresh.
 */
export async function stepUp(
  deps: OwnFactorDeps,
  { principal, requestContext }: Caller,
  proof: ProofBody,
): Promise<Date> {
  const now = deps.clock.now();
  const { userId, jti, familyId } = principal;
  const outcome = await deps.db.transaction(async (tx) => {
    await holdCaller(tx, principal);
    if ((await queries.factorsOf(tx, userId)).length === 0) throw new Problem("no_second_factor");
    const sent = { userId, jti, proof, actor: principal, requestContext, now };
    const proved = await proveFactor(tx, deps, sent);
    if (proved.kind === "right" && familyId !== null) await queries.stampProof(tx, familyId, now);
    return proved;
  });
  if (outcome.kind !== "right") throw problemOfProof(outcome);
  return addMs(now, FRESH_MS);
}

interface HeldFactors {
  readonly factors: readonly queries.FactorRow[];
  readonly state: queries.FactorState;
}

/**
 * Locks the caller, and throws `step_up_required` if the session is not fresh. A user without a factor may set up the
 * first one within `FRESH_MS` after the sign-in. A caller with a challenge token may set up only the first factor: if
 * the user has one already, `forbidden` is thrown. Throws `limit_reached` if the user has the maximum number of factors
 * of the kind `adds`.
 */
async function holdForChange(
  tx: Tx,
  principal: Principal,
  { now, adds }: { readonly now: Date; readonly adds?: keyof typeof MOST_FACTORS },
): Promise<HeldFactors> {
  await holdCaller(tx, principal);
  const factors = await queries.factorsOf(tx, principal.userId);
  const state = await queries.factorStateOf(tx, principal.userId);
  const { tokenKind, factorAt, signedInAt } = principal;
  const hasFactor = factors.length > 0;
  if (tokenKind === "challenge") {
    if (hasFactor) throw new Problem("forbidden");
  } else if (!isFresh(factorAt, now) && (hasFactor || !isFresh(signedInAt, now))) {
    throw new Problem("step_up_required");
  }
  if (adds !== undefined) {
    const many = factors.filter(({ kind }) => kind === adds).length;
    if (many >= MOST_FACTORS[adds]) throw new Problem("limit_reached");
  }
  return { factors, state };
}

/**
 * Stores a new factor. For the user's first factor, the function also creates the recovery codes. For a caller with a
 * challenge token, it also completes the sign-in of this token.
 */
async function addFactor(
  tx: Tx,
  deps: OwnFactorDeps,
  { principal, requestContext }: Caller,
  row: Parameters<typeof queries.insertFactor>[1],
): Promise<NewFactorAnswer> {
  const { id, userId, kind, name, createdAt: now } = row;
  const isFirst = (await queries.factorsOf(tx, userId)).length === 0;
  const inserted = await queries.insertFactor(tx, row);
  if (inserted === undefined) throw invalid({ credential: ["is already registered"] });
  const details = { factor_id: id, kind };
  const action = "SECOND_FACTOR_ADDED";
  await recordAudit(tx, { at: now, action, actor: principal, requestContext, details });
  await mailAboutFactor(tx, deps, {
    userId,
    change: "added",
    facts: [["Second factor", name]],
    requestContext,
    now,
  });
  const factor = showFactor(inserted);
  const recovery_codes = isFirst ? await makeRecoveryCodes(tx, userId) : null;
  const { familyId, jti } = principal;
  if (familyId !== null) {
    await queries.stampProof(tx, familyId, now);
    return { factor, recovery_codes, sign_in: null };
  }
  const method = (await queries.findChallenge(tx, jti))?.method ?? "login";
  await deleteToken(tx, jti);
  const user = { id: userId, companyId: principal.companyId };
  const sign_in = await openProved(tx, deps, { user, method, requestContext, now });
  return { factor, recovery_codes, sign_in };
}

async function makeRecoveryCodes(tx: Tx, userId: number): Promise<string[]> {
  const codes = Array.from({ length: RECOVERY_CODES }, newRecoveryCode);
  await queries.deleteRecoveryCodes(tx, userId);
  const hashes = codes.map((one) => hashSecret(plainRecoveryCode(one)));
  await queries.insertRecoveryCodes(tx, userId, hashes);
  return codes;
}

/** Returns the user and the name under which apps and browsers show the service, which is the brand of the tenant. */
async function partiesOf(tx: Tx, userId: number) {
  const [[mailed], person] = [await findMailed(tx, userId), await findPerson(tx, userId)];
  if (person === undefined) throw new Problem("unauthenticated");
  return { issuer: mailed?.brand ?? OWN_BRAND, user: person };
}
