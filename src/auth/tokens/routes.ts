import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import * as api from "./api-tokens.ts";
import * as dashboard from "./dashboard-tokens.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { join } from "../../http/join.ts";
import { listOf, pageOf, pageQuery } from "../../http/list.ts";
import { loads } from "../../http/request-state.ts";
import { dashboardSignIn, ownSignIn, withStepUp } from "../access/guard.ts";
import {
  apiTokenBody,
  apiTokenList,
  dashboardTokenAnswer,
  newApiTokenAnswer,
  showApiToken,
} from "./model.ts";

export interface PersonalTokenRouteDeps extends api.ApiTokenDeps {
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
      ({ principal, requestContext }) =>
        dashboard.viewDashboardToken(
          deps,
          { principal, requestContext },
          dashboard.ownHolder(principal),
        ),
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
        status(
          201,
          await dashboard.makeDashboardToken(
            deps,
            { principal, requestContext },
            dashboard.ownHolder(principal),
          ),
        ),
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
        dashboard.regenerateDashboardToken(
          deps,
          { principal, requestContext },
          dashboard.ownHolder(principal),
        ),
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
        await dashboard.deleteDashboardToken(
          deps,
          { principal, requestContext },
          dashboard.ownHolder(principal),
        );
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
  description: "Newest first. Also returns the dashboard token, without its value.",
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
          dashboard_token: await dashboard.describeDashboardToken(deps, principal),
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
