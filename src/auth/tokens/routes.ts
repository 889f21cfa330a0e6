import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import * as api from "./api-tokens.ts";
import type { Db, Tx } from "../../../db/client.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordAudit } from "../../audit/queries.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { join } from "../../http/join.ts";
import { listOf, pageOf, pageQuery } from "../../http/list.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import { shown } from "../../http/shown.ts";
import { type Clock, isoInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { dashboardSignIn, ownSignIn, withStepUp } from "../access/guard.ts";
import { creating } from "../keyed-requests.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { holdCaller, issueToken, sealedTokenContext } from "../sign-in/open-session.ts";
import { type SecurityMailDeps, mailAboutToken } from "../sign-in/security-mails.ts";
import {
  apiTokenBody,
  apiTokenList,
  dashboardTokenAnswer,
  newApiTokenAnswer,
  showApiToken,
  type DashboardTokenAnswer,
} from "./model.ts";
import { deleteToken, findDashboardToken, type DashboardToken } from "./queries.ts";

export interface PersonalTokenRouteDeps
  extends Omit<DashboardTokenDeps, "config">, api.ApiTokenDeps {
  readonly checks: Checks;
}

/** Defines the routes of both kinds of personal access token (contract 4.18 and 4.19). */
export function personalTokenRoutes(deps: PersonalTokenRouteDeps) {
  return join(dashboardTokenRoutes(deps), apiTokenRoutes(deps));
}

function dashboardTokenRoutes(deps: PersonalTokenRouteDeps) {
  const access = withStepUp(dashboardSignIn());
  const missing = errorResponse("not_found");
  return new Elysia({ prefix: `${BASE_PATH}/account/api-token`, tags: ["Self-service"] })
    .use(deps.checks)
    .get(
      "",
      ({ principal, requestContext }) => viewDashboardToken(deps, { principal, requestContext }),
      {
        access,
        response: { 200: dashboardTokenAnswer, 404: missing },
        detail: {
          operationId: "getDashboardToken",
          summary: "Show the dashboard's personal access token",
          description: "Requires a token from login or single sign-on.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, status }) =>
        status(201, await makeDashboardToken(deps, { principal, requestContext })),
      {
        access,
        body: NO_FIELDS,
        response: { 201: dashboardTokenAnswer, 409: errorResponse("token_exists") },
        detail: {
          operationId: "createDashboardToken",
          summary: "Generate the dashboard's personal access token",
          description: "One per user; it never expires.",
        },
      },
    )
    .post(
      "/regenerate",
      ({ principal, requestContext }) =>
        regenerateDashboardToken(deps, { principal, requestContext }),
      {
        access,
        body: NO_FIELDS,
        response: { 200: dashboardTokenAnswer, 404: missing },
        detail: {
          operationId: "regenerateDashboardToken",
          summary: "Replace the dashboard's personal access token",
          description: "The previous token stops working immediately.",
        },
      },
    )
    .delete(
      "",
      async ({ principal, requestContext, status }) => {
        await deleteDashboardToken(deps, { principal, requestContext });
        return status(204, undefined);
      },
      {
        access,
        response: { 204: Type.Void(), 404: missing },
        detail: {
          operationId: "revokeDashboardToken",
          summary: "Revoke the dashboard's personal access token",
          description: "It stops working immediately.",
        },
      },
    );
}

const LIST_PERSONAL_ACCESS_TOKENS = {
  operationId: "listPersonalAccessTokens",
  summary: "List personal access tokens",
  description:
    "Newest first, with their last use. Also returns the personal access token of the dashboard, without its value.",
};
const CREATE_PERSONAL_ACCESS_TOKEN = {
  operationId: "createPersonalAccessToken",
  summary: "Issue a personal access token",
  description: "Valid for one day, with at most the caller's scopes; shown once.",
};
const REVOKE_PERSONAL_ACCESS_TOKEN = {
  operationId: "revokePersonalAccessToken",
  summary: "Revoke a personal access token",
  description: "It stops working immediately.",
};

function apiTokenRoutes(deps: PersonalTokenRouteDeps) {
  const access = ownSignIn();
  return new Elysia({
    prefix: `${BASE_PATH}/account/personal-access-tokens`,
    tags: ["Self-service"],
  })
    .use(deps.checks)
    .macro(
      loads("token", ({ principal, requestContext, params }) =>
        api.findOwnApiToken(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await api.listApiTokens(deps, principal, page);
        return {
          ...listOf(rows, page, { key: api.apiTokenKey, show: showApiToken }),
          dashboard_token: await describeDashboardToken(deps, principal),
        };
      },
      {
        access,
        query: Type.Object(pageQuery(api.isApiTokenKey)),
        response: { 200: apiTokenList },
        detail: { ...LIST_PERSONAL_ACCESS_TOKENS },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(201, await api.makeApiToken(deps, { principal, requestContext }, body)),
      {
        access: withStepUp(access),
        body: apiTokenBody,
        response: { 201: newApiTokenAnswer, 409: errorResponse("limit_reached") },
        detail: { ...CREATE_PERSONAL_ACCESS_TOKEN },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, token, status }) => {
        await api.deleteApiToken(deps, { principal, requestContext }, token);
        return status(204, undefined);
      },
      {
        access,
        token: true,
        response: { 204: Type.Void() },
        detail: { ...REVOKE_PERSONAL_ACCESS_TOKEN },
      },
    );
}

interface DashboardTokenDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly config: SecurityMailDeps["config"];
}

const KIND = "dashboard_pat";

/**
 * Handles `GET /account/api-token`, which shows the user's dashboard token again. The audit log records this as
 * TOKEN_VIEWED.
 */
async function viewDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const { userId } = caller.principal;
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const row = await requireDashboardToken(tx, userId);
    await audit(tx, caller, { action: "TOKEN_VIEWED", jti: row.jti, now });
    const token = deps.box.open(row.sealedToken, sealedTokenContext({ jti: row.jti, userId }));
    return shown(dashboardTokenAnswer, {
      token,
      createdAt: row.issuedAt,
      lastUsedAt: row.lastUsedAt,
    });
  });
}

/** Returns when the user's dashboard token was created and last used, or null if the user has none. */
async function describeDashboardToken(
  { db }: Pick<DashboardTokenDeps, "db">,
  { userId }: Principal,
) {
  const row = await findDashboardToken(db, userId);
  return row === undefined
    ? null
    : {
        created_at: isoInstant(row.issuedAt),
        last_used_at: row.lastUsedAt && isoInstant(row.lastUsedAt),
      };
}

/** Handles `POST /account/api-token`: creates the dashboard token of the user. A user has at most one. */
async function makeDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return creating(deps.db, caller, async (tx) => {
    await holdCaller(tx, caller.principal);
    if ((await findDashboardToken(tx, caller.principal.userId)) !== undefined)
      throw new Problem("token_exists");
    return issue(tx, deps, caller, now);
  });
}

/**
 * Replaces the dashboard token in one transaction: the old token stops working at the commit that creates the new one
 * (contract 4.18).
 */
async function regenerateDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    await holdCaller(tx, caller.principal);
    await revoke(tx, caller, now);
    return issue(tx, deps, caller, now);
  });
}

async function deleteDashboardToken(deps: DashboardTokenDeps, caller: Caller): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await holdCaller(tx, caller.principal);
    await revoke(tx, caller, now);
  });
}

async function requireDashboardToken(tx: Tx, userId: number): Promise<DashboardToken> {
  const row = await findDashboardToken(tx, userId);
  if (row === undefined) throw new Problem("not_found");
  return row;
}

async function revoke(tx: Tx, caller: Caller, now: Date): Promise<void> {
  const { jti } = await requireDashboardToken(tx, caller.principal.userId);
  await deleteToken(tx, jti);
  await audit(tx, caller, { action: "TOKEN_REVOKED", jti, now });
}

async function issue(
  tx: Tx,
  deps: DashboardTokenDeps,
  caller: Caller,
  now: Date,
): Promise<DashboardTokenAnswer> {
  const { keys, box } = deps;
  const { userId } = caller.principal;
  const alone = { familyId: null, clientId: null, impersonatorId: null, ttlS: null };
  const grant = { kind: KIND, userId, ...alone, scope: "*", now, box } as const;
  const { token, jti } = await issueToken(tx, keys, grant);
  await audit(tx, caller, { action: "TOKEN_ISSUED", jti, now });
  await mailAboutToken(tx, deps, { userId, name: "of the dashboard", now });
  return shown(dashboardTokenAnswer, { token, createdAt: now, lastUsedAt: null });
}

async function audit(
  tx: Tx,
  { principal: actor, requestContext }: Caller,
  { action, jti, now }: { action: AuditAction; jti: string; now: Date },
): Promise<void> {
  await recordAudit(tx, { at: now, action, actor, requestContext, details: { kind: KIND, jti } });
}
