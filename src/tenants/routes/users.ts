import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";

import { loads } from "../../http/request-state.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { searchPageAnswer, listSchema, pageOf } from "../../http/list.ts";
import { shown, shownAs } from "../../http/shown.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import * as actions from "../actions/users.ts";
import { UserBody, UserObject, userQuery } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";

/** Defines the administrative routes for the users of all companies (contract 10.1). */
export function userRoutes(deps: AdminRouteDeps) {
  return join(userListRoutes(deps), userStateRoutes(deps));
}

function userListRoutes(deps: AdminRouteDeps) {
  return usersBase(deps)
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const found = await actions.listUsers(deps, query, page);
        return searchPageAnswer(found, page, {
          key: ({ id }) => String(id),
          show: shownAs(UserObject),
        });
      },
      {
        access: administrating,
        auditedRead: "users",
        query: userQuery,
        response: { 200: listSchema(UserObject) },
        detail: {
          operationId: "listUsers",
          summary: "List users, newest first",
          description: "Filters: company, role, email and state; `q` searches name and email.",
        },
      },
    )
    .get("/:id", ({ user }) => shown(UserObject, user), {
      access: administrating,
      auditedRead: "users",
      user: true,
      response: { 200: UserObject },
      detail: {
        operationId: "getUser",
        summary: "Show a user",
        description: "Includes the end of a sign-in lock.",
      },
    })
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          shown(UserObject, await actions.createUser(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: UserBody,
        rules: ({ body }: RuleInput<typeof UserBody>) => actions.newUserErrors(deps, body),
        response: { 201: UserObject, 503: errorResponse("overloaded") },
        detail: {
          operationId: "createUser",
          summary: "Create a user of a company",
          description:
            "The role must match the type of the company. A user without a password gets an invitation by mail.",
        },
      },
    );
}

function usersBase(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/users").macro(
    loads("user", ({ params }) => actions.findUser(deps, params["id"])),
  );
}

const INVITE_USER = {
  operationId: "inviteUser",
  summary: "Send another invitation to a user without a password",
  description: "Earlier links stop working.",
};
const DEACTIVATE_USER = {
  operationId: "deactivateUser",
  summary: "Deactivate a user",
  description: "Revokes all tokens of the user immediately.",
};
const ACTIVATE_USER = {
  operationId: "activateUser",
  summary: "Activate a user again",
  description: "Earlier tokens stay revoked.",
};
const RESET_FACTORS = {
  operationId: "resetSecondFactors",
  summary: "Delete all second factors of a user",
  description:
    "For a user who has lost the factors. Revokes all tokens of the user immediately and notifies the user by mail.",
};
const UNLOCK_USER = {
  operationId: "unlockUser",
  summary: "Lift the sign-in lock of a user",
  description: "Resets the count of wrong passwords.",
};

function userStateRoutes(deps: AdminRouteDeps) {
  return usersBase(deps)
    .post(
      "/:id/invite",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await actions.inviteAgain(deps, { principal, requestContext }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: errorResponse("not_invitable", "company_inactive") },
        detail: { ...INVITE_USER },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await actions.deactivateUser(deps, { principal, requestContext }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: errorResponse("last_super_admin") },
        detail: { ...DEACTIVATE_USER },
      },
    )
    .post(
      "/:id/activate",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await actions.activateUser(deps, { principal, requestContext }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject },
        detail: { ...ACTIVATE_USER },
      },
    )
    .delete(
      "/:id/second-factors",
      async ({ principal, requestContext, user, status }) => {
        await actions.resetFactors(deps, { principal, requestContext }, user);
        return status(204, undefined);
      },
      {
        access: changing,
        user: true,
        response: { 204: Type.Void() },
        detail: { ...RESET_FACTORS },
      },
    )
    .post(
      "/:id/unlock",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await actions.unlockUser(deps, { principal, requestContext }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject },
        detail: { ...UNLOCK_USER },
      },
    );
}
