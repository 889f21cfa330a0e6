import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { recordCompanyRead } from "../../auth/access/tenant-reads.ts";
import { partnerAdmin, superAdmin, withStepUp } from "../../auth/access/guard.ts";
import { type Access, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { loads } from "../../http/request-state.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { errorResponse } from "../../http/errors.ts";
import { shown, shownAs } from "../../http/shown.ts";
import type { RuleInput } from "../../http/rules.ts";
import * as actions from "../actions/clients.ts";
import { clientErrors } from "../redirect-uri.ts";
import {
  clientChanges,
  clientObject,
  newClientBody,
  newClientObject,
  type ClientChanges,
  type OAuthClient,
} from "../model.ts";

interface ClientRouteDeps extends actions.ClientDeps {
  readonly checks: Checks;
}

/** One of the two paths at which the routes that manage OAuth clients are mounted. */
interface RouteGroup<P extends string> {
  readonly path: P;
  readonly tag: string;
  /** Text at the end of the OpenAPI summary of each route in the group. */
  readonly titleSuffix: string;
  readonly access: Access;
  readonly isPlatform: boolean;
}

/**
 * Defines the routes that manage OAuth clients (contract 5.6). Administrators of the platform see all clients; a
 * partner sees its own clients.
 */
export function clientRoutes(deps: ClientRouteDeps) {
  return join(
    groupRoutes(deps, {
      path: "/sso/clients",
      tag: "OAuth clients",
      titleSuffix: "",
      access: superAdmin("clients:write"),
      isPlatform: true,
    }),
    groupRoutes(deps, {
      path: "/partner/oauth-clients",
      tag: "Partner",
      titleSuffix: " of the partner",
      access: partnerAdmin("clients:write"),
      isPlatform: false,
    }),
  );
}

function groupRoutes<const P extends string>(deps: ClientRouteDeps, group: RouteGroup<P>) {
  return join(
    clientListRoutes(deps, group),
    showRoute(deps, group),
    changingRoutes(deps, group),
    secretRoute(deps, group),
  );
}

function clientListRoutes<const P extends string>(deps: ClientRouteDeps, group: RouteGroup<P>) {
  const { access, isPlatform, titleSuffix } = group;
  return groupBase(deps, group)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const rows = await actions.listClients(
          deps,
          { principal, requestContext, isPlatform },
          page,
        );
        if (isPlatform) await recordRead(deps, { principal, requestContext }, null);
        return listOf(rows, page, { key: actions.clientKey, show: shownAs(clientObject) });
      },
      {
        access,
        query: Type.Object(pageQuery(actions.isClientKey)),
        response: { 200: listSchema(clientObject) },
        detail: { summary: `List OAuth clients${titleSuffix}`, description: "Newest first." },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) => {
        const created = await actions.createClient(
          deps,
          { principal, requestContext, isPlatform },
          body,
        );
        return status(201, withSecret(created));
      },
      {
        access: withStepUp(access),
        body: newClientBody,
        rules: ({ body }: RuleInput<typeof newClientBody>) => clientErrors(body, group),
        response: { 201: newClientObject, 409: errorResponse("limit_reached") },
        detail: {
          summary: `Create an OAuth client${titleSuffix}`,
          description: "The secret is shown here once and cannot be retrieved later.",
        },
      },
    );
}

/**
 * Creates an Elysia instance at the group's path. Its macro `client: true` loads the OAuth client of `:id` if the
 * caller may see or change it.
 */
function groupBase<const P extends string>(
  deps: ClientRouteDeps,
  { path, tag, isPlatform }: RouteGroup<P>,
  purpose: "see" | "change" = "see",
) {
  return new Elysia({ prefix: `${BASE_PATH}${path}` as const, tags: [tag] }).use(deps.checks).macro(
    loads("client", ({ principal, requestContext, params }) => {
      const clientId = params["id"] ?? "";
      return actions.findOwnClient(
        deps,
        { principal, requestContext, isPlatform },
        { clientId, purpose },
      );
    }),
  );
}

function showRoute<const P extends string>(deps: ClientRouteDeps, group: RouteGroup<P>) {
  const { access, isPlatform, titleSuffix } = group;
  return groupBase(deps, group).get(
    "/:id",
    async ({ principal, requestContext, client }) => {
      if (isPlatform) await recordRead(deps, { principal, requestContext }, client.companyId);
      return shown(clientObject, client);
    },
    {
      access,
      client: true,
      response: { 200: clientObject },
      detail: {
        summary: `Get an OAuth client${titleSuffix}`,
        description: "The secret is not returned.",
      },
    },
  );
}

/** Records in the audit log that an operator reads OAuth clients of a company (contract 10.3). */
const recordRead = (deps: ClientRouteDeps, caller: Caller, companyId: number | null) =>
  recordCompanyRead(deps, caller, { companyId, kind: "oauth-clients" });

function changingRoutes<const P extends string>(deps: ClientRouteDeps, group: RouteGroup<P>) {
  const { access, isPlatform, titleSuffix } = group;
  const update = async (caller: Caller, client: OAuthClient, changes: ClientChanges) => {
    const administrator = { ...caller, isPlatform };
    return shown(
      clientObject,
      await actions.changeClient(deps, administrator, { client, changes }),
    );
  };
  // The hooks are built by a function, because Elysia modifies the hook objects that it gets, so each route needs a
  // new object.
  const updating = () =>
    ({
      access: withStepUp(access),
      client: true,
      body: clientChanges,
      rules: ({ body, client: before }: RuleInput<typeof clientChanges> & FoundClient) =>
        clientErrors(body, { isPlatform, before }),
      response: { 200: clientObject },
      detail: {
        summary: `Update an OAuth client${titleSuffix}`,
        description: "Send only the fields to change.",
      },
    }) as const;
  return groupBase(deps, group, "change")
    .post(
      "/:id",
      ({ principal, requestContext, client, body }) =>
        update({ principal, requestContext }, client, body),
      updating(),
    )
    .patch(
      "/:id",
      ({ principal, requestContext, client, body }) =>
        update({ principal, requestContext }, client, body),
      updating(),
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, client, status }) => {
        await actions.deleteClient(
          deps,
          { principal, requestContext, isPlatform },
          client.clientId,
        );
        return status(204, undefined);
      },
      {
        access: withStepUp(access),
        client: true,
        response: { 204: Type.Void() },
        detail: {
          summary: `Delete an OAuth client${titleSuffix}`,
          description: "Its tokens stop working immediately.",
        },
      },
    );
}

interface FoundClient {
  readonly client: OAuthClient;
}

function secretRoute<const P extends string>(deps: ClientRouteDeps, group: RouteGroup<P>) {
  const { access, isPlatform, titleSuffix } = group;
  return groupBase(deps, group, "change").post(
    "/:id/secret",
    async ({ principal, requestContext, client }) => {
      const administrator = { principal, requestContext, isPlatform };
      return withSecret(await actions.rotateClientSecret(deps, administrator, client.clientId));
    },
    {
      access: withStepUp(access),
      client: true,
      body: NO_FIELDS,
      response: { 200: newClientObject },
      detail: {
        summary: `Rotate the secret of an OAuth client${titleSuffix}`,
        description: "The old secret stops working immediately.",
      },
    },
  );
}

function withSecret({ client, secret }: actions.ClientWithSecret) {
  return { ...shown(clientObject, client), client_secret: secret };
}
