import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { recordCompanyRead } from "../../auth/access/tenant-reads.ts";
import { inPerson, superAdmin, withStepUp } from "../../auth/access/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { loads } from "../../http/request-state.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import type { RuleInput } from "../../http/rules.ts";
import type { Config } from "../../lib/config.ts";
import * as actions from "../actions/connections.ts";
import {
  type Connection,
  connectionObject,
  connectionsQuery,
  type ConnectionUpdate,
  connectionUpdateBody,
  newConnectionBody,
  proofBody,
  showConnection,
} from "../model.ts";
import { callbackUri } from "../urls.ts";

export interface ConnectionRouteDeps extends actions.ConnectionDeps {
  readonly checks: Checks;
  readonly config: actions.ConnectionDeps["config"] & Pick<Config, "serverRoot">;
}

const reading = superAdmin();
/**
 * Access rule for changes of an SSO connection: only a super-admin in person. An SSO connection decides as which user a
 * person is signed in, so no other kind of token may change it (contract 3.9).
 */
const changing = withStepUp(inPerson(reading));

/** Defines the routes that manage SSO connections (contract 4.13 and 10.2). */
export function connectionRoutes(deps: ConnectionRouteDeps) {
  return join(collectionRoutes(deps), singleRoutes(deps));
}

function collectionRoutes(deps: ConnectionRouteDeps) {
  const show = showWith(deps);
  return connectionRoutesBase(deps)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const rows = await actions.listConnections(deps, query.company_id, page);
        const companyId = query.company_id ?? null;
        await recordRead(deps, { principal, requestContext }, companyId);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
      {
        access: reading,
        query: connectionsQuery,
        response: { 200: listSchema(connectionObject) },
        detail: {
          operationId: "listSsoConnections",
          summary: "List single sign-on connections, newest first",
          description: "`company_id` restricts the list to one company.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          show(await actions.createConnection(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: newConnectionBody,
        rules: ({ body }: RuleInput<typeof newConnectionBody>) =>
          actions.connectionErrors(deps, body),
        response: { 201: connectionObject },
        detail: {
          operationId: "createSsoConnection",
          summary: "Connect a company with an identity provider",
          description: "The client secret is stored encrypted and never returned.",
        },
      },
    );
}

/** Creates an Elysia instance whose macro `connection: true` loads the SSO connection of `:id`. */
function connectionRoutesBase(deps: ConnectionRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/sso-connections`, tags: ["Administration"] })
    .use(deps.checks)
    .macro(loads("connection", ({ params }) => actions.findConnection(deps, params["id"] ?? "")));
}

/** Records in the audit log that an operator reads SSO connections of a company (contract 10.3). */
const recordRead = (deps: ConnectionRouteDeps, caller: Caller, companyId: number | null) =>
  recordCompanyRead(deps, caller, { companyId, kind: "sso-connections" });

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
    rules: ({ body, connection }: RuleInput<typeof connectionUpdateBody> & FoundConnection) =>
      actions.connectionErrors(deps, body, connection),
    response: { 200: connectionObject },
    detail: {
      operationId: "updateSsoConnection",
      summary: "Update a single sign-on connection",
      description: "Send only the fields to change.",
    },
  } as const;
  return connectionRoutesBase(deps)
    .get(
      "/:id",
      async ({ principal, requestContext, connection }) => {
        await recordRead(deps, { principal, requestContext }, connection.companyId);
        return show(connection);
      },
      {
        access: reading,
        connection: true,
        response: { 200: connectionObject },
        detail: {
          operationId: "getSsoConnection",
          summary: "Show a single sign-on connection",
          description: "The client secret is not returned.",
        },
      },
    )
    .post(
      "/:id",
      ({ principal, requestContext, connection, body }) =>
        update({ principal, requestContext }, connection, body),
      updating,
    )
    .patch(
      "/:id",
      ({ principal, requestContext, connection, body }) =>
        update({ principal, requestContext }, connection, body),
      updating,
    )
    .post(
      "/:id/prove-domain",
      async ({ principal, requestContext, connection, body }) =>
        show(
          await actions.proveDomain(deps, { principal, requestContext }, connection, body.domain),
        ),
      {
        access: changing,
        connection: true,
        body: proofBody,
        rules: ({ body, connection }: RuleInput<typeof proofBody> & FoundConnection) =>
          actions.proofErrors(connection, body.domain),
        response: { 200: connectionObject },
        detail: {
          operationId: "proveSsoDomain",
          summary: "Prove by DNS that a company owns an email domain",
          description: "Looks up the TXT record in `domain_proofs` and stores the proof.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, connection, status }) => {
        await actions.deleteConnection(deps, { principal, requestContext }, connection.id);
        return status(204, undefined);
      },
      {
        access: changing,
        connection: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteSsoConnection",
          summary: "Delete a single sign-on connection",
          description: "Also deletes its links between users and the provider; sessions stay.",
        },
      },
    );
}

interface FoundConnection {
  readonly connection: Connection;
}
