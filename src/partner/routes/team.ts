import { Elysia } from "elysia";

import * as users from "../../admin/actions/users.ts";
import { showUser, UserObject } from "../../admin/model.ts";
import type { AdminDeps } from "../../admin/actions/deps.ts";
import type { Access } from "../../http/access.ts";
import { BASE_PATH } from "../../http/base-path.ts";
import type { Checks } from "../../http/checks.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { finds } from "../../http/finds.ts";
import { foundOf, listSchema, pageOf } from "../../http/list.ts";
import { problem } from "../../http/problem-schema.ts";
import type { Judged } from "../../http/rules.ts";
import { findTeammate, inviteTeammate, listTeam, newTeammateFaults } from "../actions.ts";
import { RoleBody, TeammateBody, teamQuery } from "../model.ts";

interface TeamRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

interface TeamAccess {
  readonly reading: Access;
  readonly managing: Access;
}

/** Contract 10.5: the people of the partner itself. */
export function teamRoutes(deps: TeamRouteDeps, access: TeamAccess) {
  return new Elysia()
    .use(teamListRoutes(deps, access))
    .use(joiningRoutes(deps, access))
    .use(stateRoutes(deps, access));
}

function teamBase(deps: TeamRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/users`, tags: ["Partner"] })
    .use(deps.checks)
    .macro(
      finds("user", ({ principal, call, params }) =>
        findTeammate(deps, { principal, call }, params["id"]),
      ),
    );
}

function teamListRoutes(deps: TeamRouteDeps, { reading, managing }: TeamAccess) {
  return teamBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listTeam(deps, principal, query, page);
        return foundOf(found, page, { key: ({ id }) => String(id), show: showUser });
      },
      {
        access: reading,
        query: teamQuery,
        response: { 200: listSchema(UserObject) },
        detail: {
          operationId: "listTeam",
          summary: "List the partner's own people, newest first",
          description: "Not those of its accounts.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, showUser(await inviteTeammate(deps, { principal, call }, body))),
      {
        access: managing,
        body: TeammateBody,
        rules: ({ body, principal }: Judged<typeof TeammateBody>) =>
          newTeammateFaults(deps, principal, body),
        response: { 201: UserObject },
        detail: {
          operationId: "inviteTeammate",
          summary: "Invite somebody to the partner",
          description: "By mail, to set a password or to sign in through the identity provider.",
        },
      },
    );
}

function joiningRoutes(deps: TeamRouteDeps, { managing }: TeamAccess) {
  return teamBase(deps)
    .post(
      "/:id/role",
      async ({ principal, call, user, body }) =>
        showUser(await users.setUserRole(deps, { principal, call }, user, body.role)),
      {
        access: managing,
        user: true,
        body: RoleBody,
        response: { 200: UserObject, 409: problem("last_owner") },
        detail: {
          operationId: "setTeamRole",
          summary: "Make somebody an owner or an admin of the partner",
          description: "From the next request on. The last active owner stays one.",
        },
      },
    )
    .post(
      "/:id/invite",
      async ({ principal, call, user }) =>
        showUser(await users.inviteAgain(deps, { principal, call }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: problem("not_invitable") },
        detail: {
          operationId: "inviteTeammateAgain",
          summary: "Mail another invitation",
          description: "The link of an earlier one ends.",
        },
      },
    );
}

function stateRoutes(deps: TeamRouteDeps, { managing }: TeamAccess) {
  return teamBase(deps)
    .post(
      "/:id/deactivate",
      async ({ principal, call, user }) =>
        showUser(await users.deactivateUser(deps, { principal, call }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: problem("last_owner") },
        detail: {
          operationId: "deactivateTeammate",
          summary: "Deactivate one of the partner's people",
          description: "Ends every token at once. The last active owner stays.",
        },
      },
    )
    .post(
      "/:id/activate",
      async ({ principal, call, user }) =>
        showUser(await users.activateUser(deps, { principal, call }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject },
        detail: {
          operationId: "activateTeammate",
          summary: "Activate one of the partner's people again",
          description: "Earlier tokens stay ended.",
        },
      },
    );
}
