import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { inPerson, partnerAdmin, partnerOwner, withStepUp } from "../../auth/access/guard.ts";
import type { KeyRing } from "../../auth/keys/key-ring.ts";
import * as tokens from "../../auth/tokens/dashboard-tokens.ts";
import { dashboardTokenAnswer } from "../../auth/tokens/model.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { tenantOf } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import { shownAs } from "../../http/shown.ts";
import type { AdminDeps } from "../actions/deps.ts";
import * as actions from "../actions/integrations.ts";
import {
  IntegrationBody,
  IntegrationChanges,
  IntegrationObject,
  integrationQuery,
} from "../integration-model.ts";
import { integrationsOf } from "../queries/integrations.ts";

export interface IntegrationRouteDeps extends AdminDeps {
  readonly checks: Checks;
  readonly keys: KeyRing;
}

/** Defines the routes for the integrations of the caller's partner and their tokens (contract 10.10). */
export function integrationRoutes(deps: IntegrationRouteDeps) {
  return join(listRoutes(deps), singleRoutes(deps), tokenRoutes(deps));
}

const reading = inPerson(partnerAdmin("*"));
/** Access rule for changes: an owner in person, because an integration acts for the partner without a person. */
const managing = withStepUp(inPerson(partnerOwner()));
const show = shownAs(IntegrationObject);

function integrationBase(deps: IntegrationRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/integrations`, tags: ["Partner"] })
    .use(deps.checks)
    .macro(
      loads("integration", ({ principal, requestContext, params }) =>
        actions.findIntegration(deps, { principal, requestContext }, params["id"]),
      ),
    );
}

function listRoutes(deps: IntegrationRouteDeps) {
  return integrationBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await integrationsOf(deps.db, tenantOf(principal), page);
        return listOf(rows, page, { key: ({ id }) => String(id), show });
      },
      {
        access: reading,
        query: integrationQuery,
        response: { 200: listSchema(IntegrationObject) },
        detail: {
          operationId: "listIntegrations",
          summary: "List the partner's integrations, newest first",
          description: "Programs of the partner that call this API.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          show(await actions.createIntegration(deps, { principal, requestContext }, body)),
        ),
      {
        access: managing,
        body: IntegrationBody,
        response: { 201: IntegrationObject, 409: errorResponse("limit_reached") },
        detail: {
          operationId: "createIntegration",
          summary: "Create an integration of the partner",
          description: "A new integration has no token.",
        },
      },
    );
}

function singleRoutes(deps: IntegrationRouteDeps) {
  return integrationBase(deps)
    .get("/:id", ({ integration }) => show(integration), {
      access: reading,
      integration: true,
      response: { 200: IntegrationObject },
      detail: {
        operationId: "getIntegration",
        summary: "Show an integration",
        description: "Same fields as in the list.",
      },
    })
    .patch(
      "/:id",
      async ({ principal, requestContext, integration, body }) =>
        show(
          await actions.updateIntegration(deps, { principal, requestContext }, integration, body),
        ),
      {
        access: managing,
        integration: true,
        body: IntegrationChanges,
        response: { 200: IntegrationObject },
        detail: {
          operationId: "changeIntegration",
          summary: "Change an integration",
          description: "Limits its token immediately. A new scope requires a new token.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, integration, status }) => {
        await actions.deleteIntegration(deps, { principal, requestContext }, integration);
        return status(204, undefined);
      },
      {
        access: managing,
        integration: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteIntegration",
          summary: "Delete an integration",
          description: "Its token, and all tokens created with it, stop working immediately.",
        },
      },
    );
}

function tokenRoutes(deps: IntegrationRouteDeps) {
  return integrationBase(deps)
    .get(
      "/:id/api-token",
      ({ principal, requestContext, integration }) => {
        const holder = actions.holderOf(integration);
        return tokens.viewDashboardToken(deps, { principal, requestContext }, holder);
      },
      {
        access: managing,
        integration: true,
        response: { 200: dashboardTokenAnswer },
        detail: {
          operationId: "getIntegrationToken",
          summary: "Show the token of an integration",
          description: "404 if it has none.",
        },
      },
    )
    .post(
      "/:id/api-token",
      async ({ principal, requestContext, integration, status }) => {
        const holder = actions.holderOf(integration);
        const caller = { principal, requestContext };
        return status(201, await tokens.makeDashboardToken(deps, caller, holder));
      },
      {
        access: managing,
        integration: true,
        body: NO_FIELDS,
        response: { 201: dashboardTokenAnswer, 409: errorResponse("token_exists") },
        detail: {
          operationId: "createIntegrationToken",
          summary: "Generate the token of an integration",
          description: "One per integration, with its scopes; it never expires.",
        },
      },
    )
    .post(
      "/:id/api-token/regenerate",
      ({ principal, requestContext, integration }) => {
        const holder = actions.holderOf(integration);
        return tokens.regenerateDashboardToken(deps, { principal, requestContext }, holder);
      },
      {
        access: managing,
        integration: true,
        body: NO_FIELDS,
        response: { 200: dashboardTokenAnswer },
        detail: {
          operationId: "regenerateIntegrationToken",
          summary: "Replace the token of an integration",
          description: "The previous token stops working immediately.",
        },
      },
    )
    .delete(
      "/:id/api-token",
      async ({ principal, requestContext, integration, status }) => {
        const holder = actions.holderOf(integration);
        await tokens.deleteDashboardToken(deps, { principal, requestContext }, holder);
        return status(204, undefined);
      },
      {
        access: managing,
        integration: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "revokeIntegrationToken",
          summary: "Revoke the token of an integration",
          description: "It stops working immediately.",
        },
      },
    );
}
