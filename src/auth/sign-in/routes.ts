import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { isUlid } from "../../http/ids.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import type { RuleInput, RuleErrors } from "../../http/rules.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { recordAccessDenied } from "../access/access-denied.ts";
import { authorityOf, excessOf } from "../access/authority.ts";
import { partnerAdmin, selfService, withStepUp } from "../access/guard.ts";
import { creating } from "../keyed-requests.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import {
  impersonationAnswer,
  impersonationBody,
  sessionObject,
  showSession,
  type ImpersonationAnswer,
  type ImpersonationBody,
} from "../tokens/model.ts";
import { findAccountWithOwner, holdUser } from "../user-queries.ts";
import { holdCaller, type IssuedToken, issueToken, readContext } from "./open-session.ts";
import { insertAuthenticationEvent } from "./queries.ts";
import { endSession, findOwnSession, listSessions } from "./sessions.ts";

export interface SessionRouteDeps extends ImpersonateDeps {
  readonly checks: Checks;
  readonly config: ImpersonateDeps["config"] & Pick<Config, "sessionLimits">;
}

/** Defines the routes of the user's own sessions (contract 4.21). */
export function sessionRoutes(deps: SessionRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/account/sessions`, tags: ["Self-service"] })
    .use(deps.checks)
    .macro(
      loads("session", ({ principal, requestContext, params }) =>
        findOwnSession(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listSessions(deps, principal, page);
        const show = (row: (typeof rows)[number]) => showSession(row, principal);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
      {
        access: selfService(),
        query: Type.Object(pageQuery(isUlid)),
        response: { 200: listSchema(sessionObject) },
        detail: {
          operationId: "listSessions",
          summary: "List the sign-ins that have a valid token",
          description: "Newest first.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, session, status }) => {
        await endSession(deps, { principal, requestContext }, session);
        return status(204, undefined);
      },
      {
        access: selfService(),
        session: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "endSession",
          summary: "End a sign-in and revoke its tokens",
          description: "Its tokens stop working immediately.",
        },
      },
    );
}

/** Defines the route that issues an impersonation token (contract 4.20). */
export function impersonationRoute(deps: SessionRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/account-owner`, tags: ["Partner"] })
    .use(deps.checks)
    .post(
      "/token",
      async ({ principal, requestContext, body, status }) =>
        status(201, await impersonateOwner(deps, { principal, requestContext }, body)),
      {
        access: withStepUp(partnerAdmin("impersonate")),
        body: impersonationBody,
        rules: ({ principal, body }: RuleInput<typeof impersonationBody>) =>
          accountErrors(deps, principal, body.account_id),
        response: { 201: impersonationAnswer, 404: errorResponse("not_found") },
        detail: {
          operationId: "impersonateAccountOwner",
          summary: "Issue a token that acts as the owner of an account",
          description: "For an account of the partner. The audit log names both users.",
        },
      },
    );
}

interface ImpersonateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

interface AccountOwner {
  readonly userId: number;
  readonly companyId: number;
}

/**
 * Handles `POST /partner/account-owner/token` (contract 4.20): issues a token that acts as the owner of one of the
 * partner's accounts.
 */
async function impersonateOwner(
  deps: ImpersonateDeps,
  caller: Caller,
  { account_id, reason }: ImpersonationBody,
): Promise<ImpersonationAnswer> {
  const owner = await findOwner(deps, caller, account_id);
  const now = deps.clock.now();
  const { token, context } = await creating(deps.db, caller, async (tx) => {
    // Users are locked before tokens, as in every transaction that revokes tokens, so that two such transactions
    // cannot deadlock.
    if (!(await holdUser(tx, owner.userId))) throw noOwner();
    await holdCaller(tx, caller.principal);
    const issued = await startImpersonation(tx, deps, { caller, owner, now, reason });
    return { token: issued.token, context: (await readContext(tx, owner.userId)).context };
  });
  const { userId: impersonator_id } = caller.principal;
  return {
    access_token: token,
    token_type: "Bearer",
    expires_in: deps.config.accessTokenTtlS,
    user: context.user,
    company: context.company,
    acting_as: { user_id: owner.userId, account_id, impersonator_id },
  };
}

/**
 * Returns the validation error for an account that has no active owner to act as. If the account is missing or belongs
 * to another partner, this function returns no error, because `findOwner` then throws 404 or 403.
 */
async function accountErrors(
  { db }: Pick<ImpersonateDeps, "db">,
  { partnerId }: Principal,
  accountId: number | undefined,
): Promise<RuleErrors> {
  const account = accountId === undefined ? undefined : await findAccountWithOwner(db, accountId);
  if (account === undefined || account.partnerId !== partnerId) return {};
  const canAct = account.ownerId !== null && account.isActive;
  return { account_id: canAct ? undefined : NO_OWNER };
}

/**
 * Finds the owner of the account. Throws 404 for a missing account, 403 with an AUTHZ_DENIED row for an account of
 * another partner, and 422 for an account without an active owner (contract 4).
 */
async function findOwner(
  deps: Pick<ImpersonateDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  accountId: number,
): Promise<AccountOwner> {
  const account = await findAccountWithOwner(deps.db, accountId);
  if (account === undefined) throw new Problem("not_found");
  const made = { ...authorityOf(principal), partnerId: account.partnerId, accountId };
  if (excessOf(principal, made) !== undefined) {
    const details = { account_id: accountId, reason: "foreign_record" };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  if (account.ownerId === null || !account.isActive) throw noOwner();
  return { userId: account.ownerId, companyId: account.id };
}

const NO_OWNER = "is an account without an active owner";

function noOwner(): Problem {
  return invalid({ account_id: [NO_OWNER] });
}

/**
 * Issues the impersonation token. The token has at most the scopes of the caller's token, and it ends when that token
 * is revoked or its OAuth client is deleted.
 */
async function startImpersonation(
  tx: Tx,
  { keys, config }: ImpersonateDeps,
  session: { caller: Caller; owner: AccountOwner; now: Date; reason: string | undefined },
): Promise<IssuedToken> {
  const { caller, owner, now, reason } = session;
  const { userId: impersonatorId, jti: parentJti, clientId, scopes } = caller.principal;
  const { ip, userAgent } = caller.requestContext;
  const familyId = ulid(now.getTime());
  const { userId } = owner;
  const event = { id: familyId, userId, method: "impersonation", clientId, ip, userAgent } as const;
  await insertAuthenticationEvent(tx, { ...event, at: now });
  const issued = await issueToken(tx, keys, {
    kind: "impersonation",
    userId,
    familyId,
    clientId,
    impersonatorId,
    parentJti,
    now,
    scope: [...scopes].join(" "),
    ttlS: config.accessTokenTtlS,
  });
  await recordAudit(tx, {
    at: now,
    action: "IMPERSONATION_STARTED",
    actor: { ...owner, impersonatorId },
    requestContext: caller.requestContext,
    details: { jti: issued.jti, reason: reason ?? null },
  });
  return issued;
}
