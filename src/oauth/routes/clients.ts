import { Type } from "@sinclair/typebox";

import { partnerAdmin, superAdmin } from "../../auth/guard.ts";
import type { Principal } from "../../http/principal.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { Answer, route, type Access, type Call, type Route } from "../../http/route.ts";
import * as actions from "../actions/clients.ts";
import { clientFaults } from "../input.ts";
import {
  clientChanges,
  clientObject,
  newClientBody,
  newClientObject,
  showClient,
  type OAuthClient,
} from "../model.ts";

interface Group {
  readonly base: "/sso/clients" | "/partner/oauth-clients";
  readonly whose: string;
  readonly access: Extract<Access, { kind: "bearer" }>;
  readonly isPlatform: boolean;
}

/** decisions.md 2, OAuth clients: the platform's administrators see them all, a partner its own. */
export function clientRoutes(deps: actions.ClientDeps) {
  const scope = "clients:write";
  const groups: Group[] = [
    { base: "/sso/clients", whose: "", access: superAdmin(scope), isPlatform: true },
    {
      base: "/partner/oauth-clients",
      whose: " of the partner",
      access: partnerAdmin(scope),
      isPlatform: false,
    },
  ];
  return groups.flatMap((group) => [...listRoutes(deps, group), ...recordRoutes(deps, group)]);
}

const callerOf = (
  { isPlatform }: Group,
  { principal, call }: { principal: Principal; call: Call },
) => ({ principal, call, isPlatform });

function withSecret({ client, secret }: actions.WithSecret) {
  return { ...showClient(client), client_secret: secret };
}

function listRoutes(deps: actions.ClientDeps, group: Group) {
  const { base: path, whose, access } = group;
  return [
    route({
      method: "GET",
      path,
      summary: `List OAuth clients${whose}`,
      access,
      query: Type.Object(pageQuery(actions.isClientKey)),
      answers: { 200: listSchema(clientObject) },
      async handle({ query, ...input }) {
        const page = pageOf(query);
        const rows = await actions.listClients(deps, callerOf(group, input), page);
        return listOf(rows, page, { key: actions.clientKey, show: showClient });
      },
    }),
    route({
      method: "POST",
      path,
      summary: `Create an OAuth client${whose}`,
      description: "The secret is shown here once and cannot be retrieved later.",
      access,
      body: newClientBody,
      answers: { 201: newClientObject },
      rules: ({ body }) => clientFaults(body, group),
      handle: async ({ body, ...input }) =>
        new Answer(201, withSecret(await actions.createClient(deps, callerOf(group, input), body))),
    }),
  ];
}

type Asked = Parameters<NonNullable<Route["find"]>>[0];

/** The client that the path names, as far as the caller may see it. */
function finder(deps: actions.ClientDeps, group: Group) {
  return ({ params, ...asked }: Asked & { principal: Principal }): Promise<OAuthClient> =>
    actions.findOwnClient(deps, callerOf(group, asked), params["id"] ?? "");
}

function recordRoutes(deps: actions.ClientDeps, group: Group) {
  const { base, whose, access } = group;
  const path = `${base}/:id` as const;
  const find = finder(deps, group);
  return [
    route({
      method: "GET",
      path,
      summary: `Get an OAuth client${whose}`,
      access,
      answers: { 200: clientObject },
      find,
      handle: async ({ found }) => showClient(found),
    }),
    updateRoute(deps, group, "POST"),
    updateRoute(deps, group, "PATCH"),
    route({
      method: "DELETE",
      path,
      summary: `Delete an OAuth client${whose} and end its tokens`,
      access,
      answers: { 204: null },
      find,
      async handle({ found, ...input }) {
        await actions.deleteClient(deps, callerOf(group, input), found.clientId);
        return new Answer(204);
      },
    }),
    route({
      method: "POST",
      path: `${path}/secret` as const,
      summary: `Rotate the secret of an OAuth client${whose}`,
      description: "The old secret stops working at once.",
      access,
      answers: { 200: newClientObject },
      problems: ["validation_failed"],
      find,
      async handle({ found, ...input }) {
        const caller = callerOf(group, input);
        return withSecret(await actions.rotateClientSecret(deps, caller, found.clientId));
      },
    }),
  ];
}

function updateRoute(deps: actions.ClientDeps, group: Group, method: "POST" | "PATCH") {
  return route({
    method,
    path: `${group.base}/:id` as const,
    summary: `Update an OAuth client${group.whose}`,
    access: group.access,
    body: clientChanges,
    answers: { 200: clientObject },
    find: finder(deps, group),
    rules: ({ body, found: before }) =>
      clientFaults(body, { isPlatform: group.isPlatform, before }),
    async handle({ found, body: changes, ...input }) {
      const { clientId } = found;
      const caller = callerOf(group, input);
      return showClient(await actions.changeClient(deps, caller, { clientId, changes }));
    },
  });
}
