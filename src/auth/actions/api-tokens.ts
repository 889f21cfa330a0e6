import type { Db } from "../../../db/client.ts";
import { recordAudit } from "./audit.ts";
import type { Page } from "../../http/list.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { isoInstant, type Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { Problem } from "../../lib/problem.ts";
import { authorityOf } from "../authority.ts";
import type { KeyRing } from "../key-ring.ts";
import {
  apiTokensOf,
  countApiTokens,
  deleteToken,
  findApiToken,
  type ApiTokenRow,
} from "../queries/tokens.ts";
import { findTeamToken, tokensOfTeam } from "../queries/token-uses.ts";
import type { ApiTokenBody, NewApiTokenAnswer, TeamToken } from "../token-model.ts";
import { holdCaller, issueToken } from "./open-session.ts";
import { recordAccessDenied, refuseExcess } from "./access-denied.ts";

export interface ApiTokenDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

const KIND = "api_pat";
/** See contract 3.7. */
const API_TOKENS_PER_USER = 100;

/** `POST /account/personal-access-tokens`. Without `scopes` the new token has those of the caller's token. */
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
  const issued = await deps.db.transaction(async (tx) => {
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
    return one;
  });
  const { token, jti, expiresAt } = issued;
  if (expiresAt === null) throw new Error("A personal access token of the API expires.");
  return { access_token: token, token: { id: jti, name, expires_at: isoInstant(expiresAt) } };
}

export function listApiTokens(
  { db, clock }: Pick<ApiTokenDeps, "db" | "clock">,
  principal: Principal,
  page: Page,
): Promise<ApiTokenRow[]> {
  return apiTokensOf(db, principal, { now: clock.now(), page });
}

/** `GET /partner/tokens`: what the people of a partner act by apart from a sign-in. */
export function listTeamTokens(
  { db, clock }: Pick<ApiTokenDeps, "db" | "clock">,
  partnerId: number,
  page: Page,
): Promise<TeamToken[]> {
  return tokensOfTeam(db, partnerId, { now: clock.now(), page });
}

/** The key of a token in a list's cursor; `apiTokensOf` and `tokensOfTeam` read it. */
export function apiTokenKey({ issuedAt, jti }: Pick<ApiTokenRow, "issuedAt" | "jti">): string {
  return `${issuedAt.getTime()}.${jti}`;
}

export const isApiTokenKey = (key: string): boolean => /^\d{1,15}\.[\w-]{1,64}$/.test(key);

/** The form of a jti of ours; any other text cannot be in the database. */
const TOKEN_ID = /^[\w-]{1,64}$/;

/**
 * 404 where there is none, 403 and an AUTHZ_DENIED row where it is another user's (contract 2.6), or where the caller's
 * token could not have made it.
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

type TeamTokenRow = NonNullable<Awaited<ReturnType<typeof findTeamToken>>>;

/**
 * A token of the partner's own people that the caller may end: an owner everybody's, an admin their own. 404 where there
 * is none, 403 and an AUTHZ_DENIED row where it is not theirs to end.
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
  if (isOfTeam && (isOwn || principal.role === "partner_owner")) return row;
  const details = { token_id: id, reason: isOfTeam ? "forbidden" : "foreign_record" };
  await recordAccessDenied(deps, principal, { requestContext, details });
  throw new Problem("forbidden");
}

/** `DELETE /partner/tokens/{id}` ends the token, and what was made with it. */
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
