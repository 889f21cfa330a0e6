import { superAdmin } from "../../auth/guard.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import type { Config } from "../../lib/config.ts";
import * as actions from "../actions/connections.ts";
import {
  connectionObject,
  connectionsQuery,
  connectionUpdateBody,
  newConnectionBody,
  showConnection,
  type Connection,
} from "../model.ts";
import { callbackUri } from "../places.ts";

interface RouteDeps extends actions.ConnectionDeps {
  readonly config: actions.ConnectionDeps["config"] & Pick<Config, "serverRoot">;
}

const BASE = "/admin/sso-connections";

/** decisions.md 2, SSO legs; 7, administration. */
export function connectionRoutes(deps: RouteDeps) {
  return [...collectionRoutes(deps), ...singleRoutes(deps)];
}

const showWith =
  ({ config }: RouteDeps) =>
  (row: Connection) =>
    showConnection(row, callbackUri(config, row.id));

const findWith =
  (deps: RouteDeps) =>
  ({ params }: { params: Readonly<Record<string, string>> }) =>
    actions.findConnection(deps, params["id"] ?? "");

function collectionRoutes(deps: RouteDeps) {
  const show = showWith(deps);
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List single sign-on connections, newest first",
      access: superAdmin(),
      query: connectionsQuery,
      answers: { 200: listSchema(connectionObject) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await actions.listConnections(deps, query.company_id, page);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
    }),
    route({
      method: "POST",
      path: BASE,
      summary: "Connect a company with an identity provider",
      description: "The client secret is stored sealed and is in no answer.",
      access: superAdmin(),
      body: newConnectionBody,
      answers: { 201: connectionObject },
      rules: ({ body }) => actions.connectionFaults(deps, body, undefined),
      async handle({ principal, call, body }) {
        const made = await actions.createConnection(deps, { principal, call }, body);
        return new Answer(201, show(made));
      },
    }),
  ];
}

function singleRoutes(deps: RouteDeps) {
  const show = showWith(deps);
  const update = (method: "POST" | "PATCH") =>
    route({
      method,
      path: `${BASE}/:id`,
      summary: "Update a single sign-on connection",
      access: superAdmin(),
      find: findWith(deps),
      body: connectionUpdateBody,
      answers: { 200: connectionObject },
      rules: ({ body, found }) => actions.connectionFaults(deps, body, found.id),
      async handle({ principal, call, body, found: { id } }) {
        return show(await actions.updateConnection(deps, { principal, call }, { id, body }));
      },
    });
  return [
    route({
      method: "GET",
      path: `${BASE}/:id`,
      summary: "Show a single sign-on connection",
      access: superAdmin(),
      find: findWith(deps),
      answers: { 200: connectionObject },
      handle: async ({ found }) => show(found),
    }),
    update("POST"),
    update("PATCH"),
    route({
      method: "DELETE",
      path: `${BASE}/:id`,
      summary: "Delete a single sign-on connection",
      description: "Its links between users and the provider go with it; sessions stay.",
      access: superAdmin(),
      find: findWith(deps),
      answers: { 204: null },
      async handle({ principal, call, found: { id } }) {
        await actions.deleteConnection(deps, { principal, call }, id);
        return new Answer(204);
      },
    }),
  ];
}
