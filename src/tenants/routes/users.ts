import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";

import { factorsAnswer } from "../../auth/factors/model.ts";
import { listFactors } from "../../auth/factors/own-factors.ts";
import type { CodeDeps } from "../../auth/passwords/codes.ts";
import { endSession, findSessionOf, listSessions } from "../../auth/sign-in/sessions.ts";
import { sessionObject, showSession } from "../../auth/tokens/model.ts";
import { findRow, isUlid } from "../../http/ids.ts";
import { loads } from "../../http/request-state.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf, pageQuery, searchPageAnswer } from "../../http/list.ts";
import { shown, shownAs } from "../../http/shown.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import type { Config } from "../../lib/config.ts";
import * as access from "../actions/user-access.ts";
import * as actions from "../actions/users.ts";
import { UserBody, UserObject, userQuery } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";

export interface UserRouteDeps extends AdminRouteDeps, CodeDeps {
  readonly config: AdminRouteDeps["config"] &
    CodeDeps["config"] &
    Pick<Config, "sessionLimits" | "operatorsRequireSecondFactor">;
}

/** Defines the administrative routes for the users of all companies (contract 10.1). */
export function userRoutes(deps: UserRouteDeps) {
  return join(userListRoutes(deps), userStateRoutes(deps), userAccessRoutes(deps));
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
          description: "`q` searches name and email.",
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
          description: "Without a password, the user is invited.",
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
  description: "Revokes all tokens of the user and notifies the user by mail.",
};
const SEND_RESET = {
  operationId: "sendPasswordReset",
  summary: "Mail a user a link to choose a new password",
  description: "The current password works until then.",
};
const UNLOCK_USER = {
  operationId: "unlockUser",
  summary: "Lift the sign-in lock of a user",
  description: "Resets the count of wrong passwords.",
};

function userStateRoutes(deps: UserRouteDeps) {
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
        response: { 200: UserObject, 409: errorResponse("user_erased") },
        detail: { ...ACTIVATE_USER },
      },
    )
    .post(
      "/:id/password-reset",
      async ({ principal, requestContext, user, status }) => {
        await access.mailPasswordReset(deps, { principal, requestContext }, user);
        return status(204, undefined);
      },
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 204: Type.Void(), 409: errorResponse("user_erased", "no_password") },
        detail: { ...SEND_RESET },
      },
    )
    .delete(
      "/:id/second-factors",
      async ({ principal, requestContext, user, status }) => {
        await access.resetFactors(deps, { principal, requestContext }, user);
        return status(204, undefined);
      },
      {
        access: changing,
        user: true,
        response: { 204: Type.Void(), 409: errorResponse("user_erased") },
        detail: { ...RESET_FACTORS },
      },
    )
    .post(
      "/:id/unlock",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await access.unlockUser(deps, { principal, requestContext }, user)),
      {
        access: changing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: errorResponse("user_erased") },
        detail: { ...UNLOCK_USER },
      },
    );
}

/** Defines the routes for the sign-ins and the second factors of a user. */
function userAccessRoutes(deps: UserRouteDeps) {
  return usersBase(deps)
    .macro(
      loads("session", ({ params: { id, sessionId = "" } }) =>
        findRow(id, (userId) => findSessionOf(deps, userId, sessionId)),
      ),
    )
    .get(
      "/:id/sessions",
      async ({ principal, user, query }) => {
        const page = pageOf(query);
        const rows = await listSessions(deps, { userId: user.id }, page);
        const show = (row: (typeof rows)[number]) => showSession(row, principal);
        return listOf(rows, page, { key: ({ id }) => id, show });
      },
      {
        access: administrating,
        auditedRead: "users",
        user: true,
        query: Type.Object(pageQuery(isUlid)),
        response: { 200: listSchema(sessionObject) },
        detail: {
          operationId: "listUserSessions",
          summary: "List the active sign-ins of a user",
          description: "Newest first.",
        },
      },
    )
    .delete(
      "/:id/sessions/:sessionId",
      async ({ principal, requestContext, session, status }) => {
        await endSession(deps, { principal, requestContext }, session);
        return status(204, undefined);
      },
      {
        access: changing,
        session: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "endUserSession",
          summary: "End a sign-in of a user",
          description: "Revokes its tokens.",
        },
      },
    )
    .get(
      "/:id/second-factors",
      ({ user }) => listFactors(deps, { userId: user.id, factorAt: null }),
      {
        access: administrating,
        auditedRead: "users",
        user: true,
        response: { 200: factorsAnswer },
        detail: {
          operationId: "listUserFactors",
          summary: "List the second factors of a user",
          description: "`fresh_until` is null.",
        },
      },
    );
}
