import { Elysia } from "elysia";

import { finds } from "../../http/finds.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { problem } from "../../http/problem-schema.ts";
import type { Judged } from "../../http/rules.ts";
import * as actions from "../actions/users.ts";
import { showUser, UserBody, UserObject, userQuery } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";

/** Contract 10.1: users. */
export function userRoutes(deps: AdminRouteDeps) {
  return new Elysia().use(userListRoutes(deps)).use(userStateRoutes(deps));
}

function userListRoutes(deps: AdminRouteDeps) {
  return usersBase(deps)
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listUsers(deps, query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showUser });
      },
      {
        access: administrating,
        query: userQuery,
        response: { 200: listSchema(UserObject) },
        detail: { summary: "List users, newest first" },
      },
    )
    .get("/:id", ({ user }) => showUser(user), {
      access: administrating,
      user: true,
      response: { 200: UserObject },
      detail: { summary: "Show a user" },
    })
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, showUser(await actions.createUser(deps, { principal, call }, body))),
      {
        access: changing,
        body: UserBody,
        rules: ({ body }: Judged<typeof UserBody>) => actions.newUserFaults(deps, body),
        response: { 201: UserObject, 503: problem("overloaded") },
        detail: {
          summary: "Create a user of a company",
          description:
            "The role must be one of the company's kind. A user without a password is mailed an invitation to set one, or to sign in through the identity provider of the company.",
        },
      },
    );
}

function usersBase(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/users").macro(
    finds("user", ({ params }) => actions.findUser(deps, params["id"])),
  );
}

function userStateRoutes(deps: AdminRouteDeps) {
  return usersBase(deps)
    .post(
      "/:id/invite",
      async ({ principal, call, user }) =>
        showUser(await actions.inviteAgain(deps, { principal, call }, user)),
      {
        access: administrating,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: problem("not_invitable") },
        detail: { summary: "Mail another invitation to a user without a password" },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, call, user }) =>
        showUser(await actions.deactivateUser(deps, { principal, call }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: problem("last_super_admin") },
        detail: {
          summary: "Deactivate a user",
          description: "Ends every token of the user at once. The last active super-admin stays.",
        },
      },
    )
    .post(
      "/:id/activate",
      async ({ principal, call, user }) =>
        showUser(await actions.activateUser(deps, { principal, call }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject },
        detail: { summary: "Activate a user again" },
      },
    )
    .post(
      "/:id/unlock",
      async ({ principal, call, user }) =>
        showUser(await actions.unlockUser(deps, { principal, call }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject },
        detail: { summary: "Lift the sign-in lock of a user" },
      },
    );
}
