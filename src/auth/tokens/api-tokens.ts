import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { creating } from "../keyed-requests.ts";
import type { Page } from "../../http/list.ts";
import type { Caller, Principal, Role } from "../../http/principal.ts";
import { isoInstant, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { authorityOf } from "../access/authority.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import {
  apiTokensOf,
  countApiTokens,
  deleteToken,
  findApiToken,
  type ApiTokenRow,
} from "./queries.ts";
import { findTeamToken, tokensOfTeam } from "./use-queries.ts";
import type { ApiTokenBody, NewApiTokenAnswer, TeamToken } from "./model.ts";
import { mailAboutToken } from "../sign-in/security-mails.ts";
import { holdCaller, issueToken } from "../sign-in/open-session.ts";
import { recordAccessDenied, refuseExcess } from "../access/access-denied.ts";

export interface ApiTokenDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly box: SecretBox;
  readonly config: Pick<Config, "accessTokenTtlS" | "securityMails">;
}

const KIND = "api_pat";
/** The highest number of personal access tokens that a user may have at the same time (contract 3.7). */
const API_TOKENS_PER_USER = 100;

/**
 * Handles `POST /account/personal-access-tokens`. Without `scopes` in the body, the new token has the scopes of the
 * caller's token.
 */
export async function makeApiToken(
  deps: ApiTokenDeps,
  { principal, requestContext }: Caller,
  { name, ...body }: ApiTokenBody,
): Promise<NewApiTokenAnswer> {
  const scopes: readonly string[] = body.scopes ?? [...principal.scopes];
  const made = { ...authorityOf(principal), scopes };
  await refuseExcess(deps, { principal, requestContext }, made, { scopes });
  const now = deps.clock.now();
  const { userId, clientId } = principal;
  const grant = {
    kind: KIND,
    userId,
    clientId,
    familyId: null,
    impersonatorId: null,
    name,
    now,
    scope: scopes.join(" "),
    ttlS: deps.config.accessTokenTtlS,
  } as const;
  const issued = await creating(deps.db, { requestContext }, async (tx) => {
    await holdCaller(tx, principal);
    if ((await countApiTokens(tx, userId, now)) >= API_TOKENS_PER_USER)
      throw new Problem("limit_reached");
    const one = await issueToken(tx, deps.keys, grant);
    const details = { kind: KIND, jti: one.jti };
    await recordAudit(tx, {
      at: now,
      action: "TOKEN_ISSUED",
      actor: principal,
      requestContext,
      details,
    });
    await mailAboutToken(tx, deps, { userId, name, now });
    return one;
  });
  const { token, jti, expiresAt } = issued;
  if (expiresAt === null)
    throw new Error("A personal access token of the API must have an expiry.");
  return { access_token: token, token: { id: jti, name, expires_at: isoInstant(expiresAt) } };
}

export function listApiTokens(
  { db, clock }: Pick<ApiTokenDeps, "db" | "clock">,
  principal: Principal,
  page: Page,
): Promise<ApiTokenRow[]> {
  return apiTokensOf(db, principal, { now: clock.now(), page });
}

/** Lists the tokens that the users of a partner or an account hold outside of a sign-in session (contract 10.5). */
export function listTeamTokens(
  { db, clock }: Pick<ApiTokenDeps, "db" | "clock">,
  companyId: number,
  page: Page,
): Promise<TeamToken[]> {
  return tokensOfTeam(db, companyId, { now: clock.now(), page });
}

/**
 * Returns the sort key of a token for the cursor of a token list, as `<issued at in ms>.<jti>`. `apiTokensOf` and
 * `tokensOfTeam` parse this key.
 */
export function apiTokenKey({ issuedAt, jti }: Pick<ApiTokenRow, "issuedAt" | "jti">): string {
  return `${issuedAt.getTime()}.${jti}`;
}

export const isApiTokenKey = (key: string): boolean => /^\d{1,15}\.[\w-]{1,64}$/.test(key);

/**
 * Matches every token id (`jti`) that the service issues. Text of any other form is not looked up, because it cannot
 * be in the database.
 */
export const TOKEN_ID = /^[\w-]{1,64}$/;

/**
 * Loads a personal access token of the caller. Throws 404 if there is no live token with this id, and 403 with an
 * AUTHZ_DENIED row if it belongs to another user (contract 2.6) or has more authority than the caller's token.
 */
export async function findOwnApiToken(
  deps: Pick<ApiTokenDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  id: string,
): Promise<ApiTokenRow> {
  const row = TOKEN_ID.test(id) ? await findApiToken(deps.db, id, deps.clock.now()) : undefined;
  if (row === undefined) throw new Problem("not_found");
  if (row.userId !== principal.userId) {
    const details = { token_id: id, reason: "foreign_record" };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  const found = { ...authorityOf(principal), scopes: row.scope.split(" ") };
  await refuseExcess(deps, { principal, requestContext }, found, { token_id: id });
  return row;
}

export async function deleteApiToken(
  deps: Pick<ApiTokenDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { jti }: ApiTokenRow,
): Promise<void> {
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    if (!(await deleteToken(tx, jti))) throw new Problem("not_found");
    const details = { kind: KIND, jti };
    await recordAudit(tx, { at, action: "TOKEN_REVOKED", actor, requestContext, details });
  });
}

const OWNER_ROLES: readonly Role[] = ["partner_owner", "account_owner"];

type TeamTokenRow = NonNullable<Awaited<ReturnType<typeof findTeamToken>>>;

/**
 * Loads a token of the users of the caller's company that the caller may revoke: an owner may revoke the tokens of
 * every user, an admin only their own. Throws 404 if there is no such token, and 403 with an AUTHZ_DENIED row if the
 * caller may not revoke it.
 */
export async function findEndableToken(
  deps: Pick<ApiTokenDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  id: string,
): Promise<TeamTokenRow> {
  const row = TOKEN_ID.test(id) ? await findTeamToken(deps.db, id, deps.clock.now()) : undefined;
  if (row === undefined) throw new Problem("not_found");
  const isOfTeam = row.holderCompanyId === principal.companyId;
  const isOwn = row.holderId === principal.userId;
  if (isOfTeam && (isOwn || OWNER_ROLES.includes(principal.role))) return row;
  const details = { token_id: id, reason: isOfTeam ? "forbidden" : "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

/** Handles `DELETE` of a token of the team: revokes the token and every token that was made with it. */
export async function endTeamToken(
  deps: Pick<ApiTokenDeps, "db" | "clock">,
  { principal: actor, requestContext }: Caller,
  { jti, kind, holderId }: TeamTokenRow,
): Promise<void> {
  const at = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    if (!(await deleteToken(tx, jti))) throw new Problem("not_found");
    const details = { kind, jti, user_id: holderId };
    await recordAudit(tx, { at, action: "TOKEN_REVOKED", actor, requestContext, details });
  });
}
