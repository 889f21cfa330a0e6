import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { inPerson, superAdmin } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/base-path.ts";
import type { Checks } from "../../http/checks.ts";
import { finds } from "../../http/finds.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import type { Judged } from "../../http/rules.ts";
import type { Config } from "../../lib/config.ts";
import * as actions from "../actions/connections.ts";
import {
  connectionObject,
  connectionsQuery,
  connectionUpdateBody,
  newConnectionBody,
  showConnection,
  type Connection,
  type ConnectionUpdate,
} from "../model.ts";
import { callbackUri } from "../places.ts";

export interface ConnectionRouteDeps extends actions.ConnectionDeps {
  readonly checks: Checks;
  readonly config: actions.ConnectionDeps["config"] & Pick<Config, "serverRoot">;
}

const reading = superAdmin();
/** A connection says who is signed in as whom (contract 3.9). */
const changing = inPerson(reading);

/** See contract 4.13 and 10.2. */
export function connectionRoutes(deps: ConnectionRouteDeps) {
  return new Elysia().use(collectionRoutes(deps)).use(singleRoutes(deps));
}

function collectionRoutes(deps: ConnectionRouteDeps) {
  const show = showWith(deps);
  return instance(deps)
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await actions.listConnections(deps, query.company_id, page);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
      {
        access: reading,
        query: connectionsQuery,
        response: { 200: listSchema(connectionObject) },
        detail: {
          operationId: "listSsoConnections",
          summary: "List single sign-on connections, newest first",
          description: "Of every company, or of one.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, show(await actions.createConnection(deps, { principal, call }, body))),
      {
        access: changing,
        body: newConnectionBody,
        rules: ({ body }: Judged<typeof newConnectionBody>) =>
          actions.connectionFaults(deps, body, undefined),
        response: { 201: connectionObject },
        detail: {
          operationId: "createSsoConnection",
          summary: "Connect a company with an identity provider",
          description: "The client secret is stored sealed and is in no answer.",
        },
      },
    );
}

/** `connection: true` finds what `:id` names. */
function instance(deps: ConnectionRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/sso-connections`, tags: ["Administration"] })
    .use(deps.checks)
    .macro(finds("connection", ({ params }) => actions.findConnection(deps, params["id"] ?? "")));
}

function showWith({ config }: ConnectionRouteDeps) {
  return (row: Connection) => showConnection(row, callbackUri(config, row.id));
}

function singleRoutes(deps: ConnectionRouteDeps) {
  const show = showWith(deps);
  const update = async (caller: Caller, { id }: Connection, body: ConnectionUpdate) =>
    show(await actions.updateConnection(deps, caller, { id, body }));
  const updating = {
    access: changing,
    connection: true,
    body: connectionUpdateBody,
    rules: ({ body, connection }: Judged<typeof connectionUpdateBody> & Found) =>
      actions.connectionFaults(deps, body, connection.id),
    response: { 200: connectionObject },
    detail: {
      operationId: "updateSsoConnection",
      summary: "Update a single sign-on connection",
      description: "Send only what is to change.",
    },
  } as const;
  return instance(deps)
    .get("/:id", ({ connection }) => show(connection), {
      access: reading,
      connection: true,
      response: { 200: connectionObject },
      detail: {
        operationId: "getSsoConnection",
        summary: "Show a single sign-on connection",
        description: "Its secret is never shown.",
      },
    })
    .post(
      "/:id",
      ({ principal, call, connection, body }) => update({ principal, call }, connection, body),
      updating,
    )
    .patch(
      "/:id",
      ({ principal, call, connection, body }) => update({ principal, call }, connection, body),
      updating,
    )
    .delete(
      "/:id",
      async ({ principal, call, connection, status }) => {
        await actions.deleteConnection(deps, { principal, call }, connection.id);
        return status(204, undefined);
      },
      {
        access: changing,
        connection: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteSsoConnection",
          summary: "Delete a single sign-on connection",
          description: "Its links between users and the provider go with it; sessions stay.",
        },
      },
    );
}

interface Found {
  readonly connection: Connection;
}
