import { superAdmin } from "../../auth/guard.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import type { AdminDeps } from "../actions/deps.ts";
import * as actions from "../actions/users.ts";
import { showUser, UserBody, UserObject, userQuery } from "../model.ts";

const BASE = "/admin/users";

/** decisions.md 7: users. */
export function userRoutes(deps: AdminDeps) {
  return [...listRoutes(deps), ...stateRoutes(deps)];
}

function listRoutes(deps: AdminDeps) {
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List users, newest first",
      access: superAdmin(),
      query: userQuery,
      answers: { 200: listSchema(UserObject) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await actions.listUsers(deps, query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showUser });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/:id`,
      summary: "Show a user",
      access: superAdmin(),
      answers: { 200: UserObject },
      find: ({ params }) => actions.findUser(deps, params["id"]),
      handle: async ({ found }) => showUser(found),
    }),
    route({
      method: "POST",
      path: BASE,
      summary: "Create a user of a company",
      description:
        "The role must be one of the company's kind. Without a password the user signs in through an identity provider, or sets one by email.",
      access: superAdmin(),
      body: UserBody,
      answers: { 201: UserObject },
      problems: ["overloaded"],
      rules: ({ body }) => actions.newUserFaults(deps, body),
      handle: async ({ principal, call, body }) =>
        new Answer(201, showUser(await actions.createUser(deps, { principal, call }, body))),
    }),
  ];
}

function stateRoutes(deps: AdminDeps) {
  const common = { method: "POST", access: superAdmin(), answers: { 200: UserObject } } as const;
  const find = ({ params }: { params: Readonly<Record<string, string>> }) =>
    actions.findUser(deps, params["id"]);
  return [
    route({
      ...common,
      path: `${BASE}/:id/deactivate`,
      summary: "Deactivate a user",
      description: "Ends every token of the user at once. The last active super-admin stays.",
      problems: ["last_super_admin"],
      find,
      handle: async ({ principal, call, found }) =>
        showUser(await actions.deactivateUser(deps, { principal, call }, found)),
    }),
    route({
      ...common,
      path: `${BASE}/:id/activate`,
      summary: "Activate a user again",
      find,
      handle: async ({ principal, call, found }) =>
        showUser(await actions.activateUser(deps, { principal, call }, found)),
    }),
    route({
      ...common,
      path: `${BASE}/:id/unlock`,
      summary: "Lift the sign-in lock of a user",
      find,
      handle: async ({ principal, call, found }) =>
        showUser(await actions.unlockUser(deps, { principal, call }, found)),
    }),
  ];
}
