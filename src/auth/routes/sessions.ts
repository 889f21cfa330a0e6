import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { loads } from "../../http/request-state.ts";
import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { errorResponse } from "../../http/errors.ts";
import type { Config } from "../../lib/config.ts";
import type { RuleInput } from "../../http/rules.ts";
import { accountErrors, impersonateOwner, type ImpersonateDeps } from "../actions/impersonate.ts";
import { endSession, findOwnSession, listSessions } from "../actions/sessions.ts";
import { partnerAdmin, selfService, withStepUp } from "../guard.ts";
import {
  impersonationAnswer,
  impersonationBody,
  sessionObject,
  showSession,
} from "../token-model.ts";

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
          summary: "List the sign-ins that still have a live token",
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
          summary: "End a sign-in with all its tokens",
          description: "Its tokens stop working at once.",
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
