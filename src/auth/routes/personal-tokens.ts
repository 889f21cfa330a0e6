import { Type } from "@sinclair/typebox";

import { listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import * as api from "../actions/api-tokens.ts";
import * as dashboard from "../actions/dashboard-token.ts";
import { dashboardSignIn, ownSignIn } from "../guard.ts";
import {
  apiTokenBody,
  apiTokenObject,
  dashboardTokenAnswer,
  newApiTokenAnswer,
  showApiToken,
} from "../token-model.ts";

export interface PersonalTokenDeps extends dashboard.DashboardTokenDeps, api.ApiTokenDeps {}

/** interface.md 5.1, way 1; decisions.md 2. */
export function personalTokenRoutes(deps: PersonalTokenDeps) {
  return [...dashboardTokenRoutes(deps), ...apiTokenRoutes(deps)];
}

const DASHBOARD = "/account/api-token";
const API = "/account/personal-access-tokens";

function dashboardTokenRoutes(deps: PersonalTokenDeps) {
  const access = dashboardSignIn();
  return [
    route({
      method: "GET",
      path: DASHBOARD,
      summary: "Show the dashboard's personal access token",
      access,
      answers: { 200: dashboardTokenAnswer },
      problems: ["not_found"],
      handle: (caller) => dashboard.viewDashboardToken(deps, caller),
    }),
    route({
      method: "POST",
      path: DASHBOARD,
      summary: "Generate the dashboard's personal access token",
      access,
      answers: { 201: dashboardTokenAnswer },
      problems: ["token_exists"],
      handle: async (caller) => new Answer(201, await dashboard.makeDashboardToken(deps, caller)),
    }),
    route({
      method: "POST",
      path: `${DASHBOARD}/regenerate`,
      summary: "Replace the dashboard's personal access token at once",
      access,
      answers: { 200: dashboardTokenAnswer },
      problems: ["not_found"],
      handle: (caller) => dashboard.regenerateDashboardToken(deps, caller),
    }),
    route({
      method: "DELETE",
      path: DASHBOARD,
      summary: "Revoke the dashboard's personal access token",
      access,
      answers: { 204: null },
      problems: ["not_found"],
      async handle(caller) {
        await dashboard.deleteDashboardToken(deps, caller);
        return new Answer(204);
      },
    }),
  ];
}

function apiTokenRoutes(deps: PersonalTokenDeps) {
  const access = ownSignIn();
  return [
    route({
      method: "GET",
      path: API,
      summary: "List personal access tokens",
      access,
      query: Type.Object(pageQuery(api.isApiTokenKey)),
      answers: { 200: listSchema(apiTokenObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await api.listApiTokens(deps, principal, page);
        return listOf(rows, page, { key: api.apiTokenKey, show: showApiToken });
      },
    }),
    route({
      method: "POST",
      path: API,
      summary: "Issue a personal access token",
      access,
      body: apiTokenBody,
      answers: { 201: newApiTokenAnswer },
      problems: ["insufficient_scope"],
      handle: async ({ body, ...caller }) =>
        new Answer(201, await api.makeApiToken(deps, caller, body)),
    }),
    route({
      method: "DELETE",
      path: `${API}/:id`,
      summary: "Revoke a personal access token",
      access,
      answers: { 204: null },
      find: ({ params, ...caller }) => api.findOwnApiToken(deps, caller, params["id"] ?? ""),
      async handle({ found, ...caller }) {
        await api.deleteApiToken(deps, caller, found);
        return new Answer(204);
      },
    }),
  ];
}
