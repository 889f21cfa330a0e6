import { Type } from "@sinclair/typebox";

import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import { accountFaults, impersonateOwner, type ImpersonateDeps } from "../actions/impersonate.ts";
import { endSession, findOwnSession, listSessions } from "../actions/sessions.ts";
import { partnerAdmin, selfService } from "../guard.ts";
import {
  impersonationAnswer,
  impersonationBody,
  sessionObject,
  showSession,
} from "../token-model.ts";

/** decisions.md 2, sessions and impersonation. */
export function sessionRoutes(deps: ImpersonateDeps) {
  return [
    route({
      method: "GET",
      path: "/account/sessions",
      summary: "List the sign-ins that still have a live token",
      access: selfService(),
      query: Type.Object(pageQuery(isUlid)),
      answers: { 200: listSchema(sessionObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await listSessions(deps, principal, page);
        const show = (row: (typeof rows)[number]) => showSession(row, principal);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
    }),
    route({
      method: "DELETE",
      path: "/account/sessions/:id",
      summary: "End a sign-in with all its tokens",
      access: selfService(),
      answers: { 204: null },
      find: ({ params, ...caller }) => findOwnSession(deps, caller, params["id"] ?? ""),
      async handle({ found, ...caller }) {
        await endSession(deps, caller, found);
        return new Answer(204);
      },
    }),
    route({
      method: "POST",
      path: "/partner/account-owner/token",
      summary: "Issue a token that acts as the owner of an account",
      access: partnerAdmin("impersonate"),
      body: impersonationBody,
      answers: { 201: impersonationAnswer },
      problems: ["not_found"],
      rules: ({ principal, body }) => accountFaults(deps, principal, body.account_id),
      handle: async ({ body, ...caller }) =>
        new Answer(201, await impersonateOwner(deps, caller, body)),
    }),
  ];
}
