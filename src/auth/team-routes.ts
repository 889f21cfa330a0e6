import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { type Access, BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../http/list.ts";
import { isUlid } from "../http/ids.ts";
import { loads } from "../http/request-state.ts";
import {
  apiTokenKey,
  endTeamToken,
  findEndableToken,
  isApiTokenKey,
  listTeamTokens,
} from "./tokens/api-tokens.ts";
import {
  endSession,
  findTeamSession,
  listTeamSessions,
  type SessionDeps,
} from "./sign-in/sessions.ts";
import { accountOwner, inPerson, partnerAdmin, partnerOwner } from "./access/guard.ts";
import {
  showTeamSession,
  showTeamToken,
  teamSessionObject,
  teamTokenObject,
} from "./tokens/model.ts";

interface TeamRouteDeps extends SessionDeps {
  readonly checks: Checks;
}

interface Team<P extends `/${string}`> {
  /** The path of the list, relative to the base path of the API. */
  readonly path: P;
  readonly tag: string;
  /** The word for the company's users in operation ids. `name` is the word for the company in summaries. */
  readonly operation: string;
  readonly name: string;
  readonly access: Access;
}

/** Defines the routes for the sign-ins and tokens of the users of a partner or an account (contract 10.5 and 4.25). */
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

function teamBase<const P extends `/${string}`>({ checks }: TeamRouteDeps, { path, tag }: Team<P>) {
  return new Elysia({ prefix: `${BASE_PATH}${path}`, tags: [tag] }).use(checks);
}

function sessionRoutes<const P extends `/${string}`>(deps: TeamRouteDeps, team: Team<P>) {
  const { access, operation, name } = team;
  return teamBase(deps, team)
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
          summary: `List the active sign-ins of the ${name}'s users, newest first`,
          description: "Sign-ins that have a valid token.",
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
          summary: `End a sign-in of a user of the ${name}`,
          description: "Its tokens, and all tokens created with them, stop working immediately.",
        },
      },
    );
}

/** Defines the routes for tokens that the users of a partner or an account hold outside of a sign-in session. */
function tokenRoutes<const P extends `/${string}`>(deps: TeamRouteDeps, team: Team<P>) {
  const { access, operation, name } = team;
  return teamBase(deps, team)
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
          summary: `List the tokens of the ${name}'s users, newest first`,
          description: "Lists tokens that do not belong to a sign-in, with their recent uses.",
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
          summary: `Revoke a token of a user of the ${name}`,
          description:
            "Owners revoke all tokens, admins their own. Tokens created with it are revoked, too.",
        },
      },
    );
}
