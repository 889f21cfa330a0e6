import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { type Access, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { loads } from "../../http/request-state.ts";
import {
  apiTokenKey,
  endTeamToken,
  findEndableToken,
  isApiTokenKey,
  listTeamTokens,
} from "../actions/api-tokens.ts";
import {
  endSession,
  findTeamSession,
  listTeamSessions,
  type SessionDeps,
} from "../actions/sessions.ts";
import { accountOwner, inPerson, partnerAdmin, partnerOwner } from "../guard.ts";
import {
  showTeamSession,
  showTeamToken,
  teamSessionObject,
  teamTokenObject,
} from "../token-model.ts";

interface TeamRouteDeps extends SessionDeps {
  readonly checks: Checks;
}

interface Team<P extends `/${string}`> {
  /** The path of a list below the base path of the API. */
  readonly path: P;
  readonly tag: string;
  /** The company in names of operations and in summaries. */
  readonly operation: string;
  readonly name: string;
  readonly access: Access;
}

/** Defines the routes for the sign-ins and tokens of the people of a partner or an account (contract 10.5 and 4.25). */
export function teamAccessRoutes(deps: TeamRouteDeps) {
  const partner = { tag: "Partner", operation: "Team", name: "partner" } as const;
  const account = { tag: "Self-service", operation: "AccountTeam", name: "account" } as const;
  const owner = inPerson(accountOwner());
  return join(
    sessionRoutes(deps, {
      ...partner,
      path: "/partner/sessions",
      access: inPerson(partnerOwner()),
    }),
    tokenRoutes(deps, {
      ...partner,
      path: "/partner/tokens",
      access: inPerson(partnerAdmin("*")),
    }),
    sessionRoutes(deps, { ...account, path: "/account/team-sessions", access: owner }),
    tokenRoutes(deps, { ...account, path: "/account/team-tokens", access: owner }),
  );
}

function base<const P extends `/${string}`>({ checks }: TeamRouteDeps, { path, tag }: Team<P>) {
  return new Elysia({ prefix: `${BASE_PATH}${path}`, tags: [tag] }).use(checks);
}

function sessionRoutes<const P extends `/${string}`>(deps: TeamRouteDeps, team: Team<P>) {
  const { access, operation, name } = team;
  return base(deps, team)
    .macro(
      loads("session", ({ principal, requestContext, params }) =>
        findTeamSession(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listTeamSessions(deps, principal, page);
        const show = (row: (typeof rows)[number]) => showTeamSession(row, principal);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
      {
        access,
        query: Type.Object(pageQuery(isUlid)),
        response: { 200: listSchema(teamSessionObject) },
        detail: {
          operationId: `list${operation}Sessions`,
          summary: `List the live sign-ins of the ${name}'s people, newest first`,
          description: "Sign-ins that still have a live token.",
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
        access,
        session: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: `end${operation}Session`,
          summary: `End a sign-in of the ${name}'s people`,
          description: "Its tokens, and everything made with them, stop working at once.",
        },
      },
    );
}

/** Defines the routes for those tokens of a team that exist outside of a sign-in session. */
function tokenRoutes<const P extends `/${string}`>(deps: TeamRouteDeps, team: Team<P>) {
  const { access, operation, name } = team;
  return base(deps, team)
    .macro(
      loads("token", ({ principal, requestContext, params }) =>
        findEndableToken(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listTeamTokens(deps, principal.companyId, page);
        return listOf(rows, page, { key: apiTokenKey, show: showTeamToken });
      },
      {
        access,
        query: Type.Object(pageQuery(isApiTokenKey)),
        response: { 200: listSchema(teamTokenObject) },
        detail: {
          operationId: `list${operation}Tokens`,
          summary: `List the tokens of the ${name}'s people, newest first`,
          description: "Tokens outside a sign-in, with their recent uses.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, token, status }) => {
        await endTeamToken(deps, { principal, requestContext }, token);
        return status(204, undefined);
      },
      {
        access,
        token: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: `end${operation}Token`,
          summary: `End a token of the ${name}'s people`,
          description:
            "Owners may end all, admins their own. Everything made with the token ends too.",
        },
      },
    );
}
