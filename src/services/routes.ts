import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { inPerson, platformService, superAdmin, withStepUp } from "../auth/access/guard.ts";
import { apiTokenKey, isApiTokenKey } from "../auth/tokens/api-tokens.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../http/list.ts";
import { loads } from "../http/request-state.ts";
import type { RuleInput } from "../http/rules.ts";
import { shown, shownAs } from "../http/shown.ts";
import * as tokens from "../auth/tokens/service-tokens.ts";
import * as actions from "./actions.ts";
import {
  IntrospectAnswer,
  IntrospectBody,
  type Service,
  ServiceBody,
  ServiceChanges,
  ServiceObject,
  serviceQuery,
  ServiceTokenBody,
  ServiceTokenObject,
  ServiceTokenWithSecret,
} from "./model.ts";
import { servicesOf } from "./queries.ts";
import type { Config } from "../lib/config.ts";
import type { Log } from "../lib/log.ts";

interface ServiceRouteDeps extends actions.ServiceDeps {
  readonly config: Pick<Config, "sessionLimits" | "operatorsRequireSecondFactor">;
  readonly log: Log;
  readonly checks: Checks;
}

/**
 * Defines the routes that manage services, and the route with which a service checks a token (contract 10.7 and 9.7).
 */
export function serviceRoutes(deps: ServiceRouteDeps) {
  return join(
    serviceListRoutes(deps),
    singleRoutes(deps),
    tokenRoutes(deps),
    introspectionRoutes(deps),
  );
}

const reading = superAdmin();
/**
 * Access rule for changes of a service: only a super-admin in person may create or change one, because a service acts
 * for whole partners (contract 3.9).
 */
const changing = withStepUp(inPerson(reading));

/** Converts a service, with its live tokens, into the response. */
async function show(deps: ServiceRouteDeps, service: Service) {
  const withTokens = await tokens.readTokens(deps, [service]);
  return shown(ServiceObject, withTokens(service));
}

function adminBase({ checks, ...deps }: ServiceRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/services`, tags: ["Administration"] })
    .use(checks)
    .macro(loads("service", ({ params }) => actions.findService(deps, params["id"])));
}

function serviceListRoutes(deps: ServiceRouteDeps) {
  return adminBase(deps)
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await servicesOf(deps.db, page);
        const withTokens = await tokens.readTokens(deps, rows);
        return listOf(rows, page, {
          key: ({ id }) => String(id),
          show: (one) => shown(ServiceObject, withTokens(one)),
        });
      },
      {
        access: reading,
        query: serviceQuery,
        response: { 200: listSchema(ServiceObject) },
        detail: {
          operationId: "listServices",
          summary: "List services, newest first",
          description: "With their live tokens, without the tokens themselves.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          await show(deps, await actions.createService(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: ServiceBody,
        rules: ({ body }: RuleInput<typeof ServiceBody>) => actions.serviceErrors(deps, body),
        response: { 201: ServiceObject },
        detail: {
          operationId: "createService",
          summary: "Create a service of the platform",
          description: "A new service has no token.",
        },
      },
    );
}

function singleRoutes(deps: ServiceRouteDeps) {
  return adminBase(deps)
    .get("/:id", ({ service }) => show(deps, service), {
      access: reading,
      service: true,
      response: { 200: ServiceObject },
      detail: {
        operationId: "getService",
        summary: "Show a service",
        description: "Same fields as in the list.",
      },
    })
    .patch(
      "/:id",
      async ({ principal, requestContext, service, body }) =>
        show(deps, await actions.updateService(deps, { principal, requestContext }, service, body)),
      {
        access: changing,
        service: true,
        body: ServiceChanges,
        rules: ({ body }: RuleInput<typeof ServiceChanges>) => actions.serviceErrors(deps, body),
        response: { 200: ServiceObject },
        detail: {
          operationId: "changeService",
          summary: "Change a service",
          description: "Limits its tokens immediately. A new scope requires a new token.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, service, status }) => {
        await actions.deleteService(deps, { principal, requestContext }, service);
        return status(204, undefined);
      },
      {
        access: changing,
        service: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteService",
          summary: "Delete a service",
          description: "Its tokens stop working immediately.",
        },
      },
    );
}

const keyOf = ({ createdAt, id }: { readonly createdAt: Date; readonly id: string }) =>
  apiTokenKey({ issuedAt: createdAt, jti: id });

function tokenRoutes(deps: ServiceRouteDeps) {
  return adminBase(deps)
    .get(
      "/:id/tokens",
      async ({ service, query }) => {
        const page = pageOf(query);
        const rows = await tokens.listServiceTokens(deps, service, page);
        return listOf(rows, page, { key: keyOf, show: shownAs(ServiceTokenObject) });
      },
      {
        access: reading,
        service: true,
        query: Type.Object(pageQuery(isApiTokenKey)),
        response: { 200: listSchema(ServiceTokenObject) },
        detail: {
          operationId: "listServiceTokens",
          summary: "List the tokens of a service, newest first",
          description: "With their expiry and last use, without the tokens themselves.",
        },
      },
    )
    .post(
      "/:id/tokens",
      async ({ principal, requestContext, service, body, status }) => {
        const caller = { principal, requestContext };
        const issued = await tokens.issueServiceToken(deps, caller, service, {
          name: body.name,
          expiresAt: body.expires_at,
        });
        return status(201, shown(ServiceTokenWithSecret, issued));
      },
      {
        access: changing,
        service: true,
        body: ServiceTokenBody,
        rules: ({ body }: RuleInput<typeof ServiceTokenBody>) =>
          tokens.tokenErrors(deps, body.expires_at),
        response: { 201: ServiceTokenWithSecret, 409: errorResponse("limit_reached") },
        detail: {
          operationId: "createServiceToken",
          summary: "Issue a token to a service",
          description:
            "The token is shown once. Earlier tokens stay valid, so you can replace them without downtime.",
        },
      },
    )
    .delete(
      "/:id/tokens/:tokenId",
      async ({ principal, requestContext, service, params, status }) => {
        const caller = { principal, requestContext };
        await tokens.revokeServiceToken(deps, caller, service, params.tokenId);
        return status(204, undefined);
      },
      {
        access: changing,
        service: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "revokeServiceToken",
          summary: "Revoke a token of a service",
          description: "It stops working immediately.",
        },
      },
    );
}

/** Defines the route with which a service checks a token (contract 9.7). */
function introspectionRoutes(deps: ServiceRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/platform`, tags: ["Platform"] })
    .use(deps.checks)
    .post(
      "/introspect",
      ({ body, requestContext }) => tokens.introspect(deps, body.token, requestContext),
      {
        access: platformService("tokens:introspect"),
        body: IntrospectBody,
        response: { 200: IntrospectAnswer },
        detail: {
          operationId: "introspectToken",
          summary: "Introspect any token of this service",
          description:
            "Returns the owner and the current scopes of a token. For an invalid token, returns only that it is inactive.",
        },
      },
    );
}
