import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { inPerson, platformService, superAdmin, withStepUp } from "../auth/guard.ts";
import { recordTenantRead } from "../auth/actions/tenant-reads.ts";
import { apiTokenKey, isApiTokenKey } from "../auth/actions/api-tokens.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { foundOf, listOf, listSchema, pageOf, pageQuery } from "../http/list.ts";
import { loads } from "../http/request-state.ts";
import type { RuleInput } from "../http/rules.ts";
import { shown, shownAs } from "../http/shown.ts";
import * as tokens from "../auth/actions/service-tokens.ts";
import * as actions from "./actions.ts";
import {
  ActionsAnswer,
  ActionsBody,
  IntrospectAnswer,
  InboxObject,
  inboxQuery,
  type InboxRow,
  InboxStatus,
  IntrospectBody,
  ServiceBody,
  ServiceChanges,
  ServiceObject,
  serviceQuery,
  ServiceTokenBody,
  ServiceTokenObject,
  ServiceTokenWithSecret,
} from "./model.ts";
import { NO_FIELDS } from "../http/fields.ts";
import { BODY_LIMIT } from "../providers/model.ts";
import { inboxOf, inboxStatus, servicesOf } from "./queries.ts";
import type { Config } from "../lib/config.ts";
import type { Log } from "../lib/log.ts";
import { actionErrors, type TakingDeps } from "./take-actions.ts";
import { createTaker } from "./take-together.ts";

interface ServiceRouteDeps extends actions.ServiceDeps, TakingDeps {
  readonly config: Pick<Config, "sessionLimits" | "operatorsRequireSecondFactor">;
  readonly log: Log;
  readonly checks: Checks;
}

/** Serves the administration of services, and the routes for services (contract 10.7 and 9.7). */
export function serviceRoutes(deps: ServiceRouteDeps) {
  return join(
    listRoutes(deps),
    singleRoutes(deps),
    tokenRoutes(deps),
    inboxRoutes(deps),
    platformRoutes(deps),
  );
}

const reading = superAdmin();
/** A service acts for whole partners, so only a person makes or changes one (contract 3.9). */
const changing = withStepUp(inPerson(reading));
const show = shownAs(ServiceObject);

function adminBase({ checks, ...deps }: ServiceRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/services`, tags: ["Administration"] })
    .use(checks)
    .macro(loads("service", ({ params }) => actions.findService(deps, params["id"])));
}

function listRoutes(deps: ServiceRouteDeps) {
  return adminBase(deps)
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        return listOf(await servicesOf(deps.db, page), page, { key: ({ id }) => String(id), show });
      },
      {
        access: reading,
        query: serviceQuery,
        response: { 200: listSchema(ServiceObject) },
        detail: {
          operationId: "listServices",
          summary: "List services, newest first",
          description: "The services of the platform that call this API.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(201, show(await actions.createService(deps, { principal, requestContext }, body))),
      {
        access: changing,
        body: ServiceBody,
        rules: ({ body }: RuleInput<typeof ServiceBody>) => actions.serviceErrors(deps, body),
        response: { 201: ServiceObject },
        detail: {
          operationId: "createService",
          summary: "Create a service of the platform",
          description: "It has no token at first.",
        },
      },
    );
}

function singleRoutes(deps: ServiceRouteDeps) {
  return adminBase(deps)
    .get("/:id", ({ service }) => show(service), {
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
        show(await actions.updateService(deps, { principal, requestContext }, service, body)),
      {
        access: changing,
        service: true,
        body: ServiceChanges,
        rules: ({ body }: RuleInput<typeof ServiceChanges>) => actions.serviceErrors(deps, body),
        response: { 200: ServiceObject },
        detail: {
          operationId: "changeService",
          summary: "Change a service",
          description: "Limits its tokens at once; a new scope needs a new token.",
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
          description: "Its tokens end at once.",
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
          description: "With their ends and last uses, never with the token.",
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
          summary: "Issue a token to a service; it is shown once",
          description: "Earlier tokens stay valid, so that they are replaced without a gap.",
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
          description: "It stops working at once.",
        },
      },
    );
}

const positionOf = ({ position }: InboxRow) => String(position);

/** Serves the inbox to operators: its rejected actions and its lag (contract 9.8). */
function inboxRoutes(deps: ServiceRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/inbox`, tags: ["Administration"] })
    .use(deps.checks)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const found = await inboxOf(deps.db, query.state ?? "rejected", page);
        // An action names no partner, and a rejected one perhaps nothing that exists.
        const read = { partnerId: null, kind: "inbox" } as const;
        await recordTenantRead(deps, { principal, requestContext }, read);
        return foundOf(found, page, { key: positionOf, show: shownAs(InboxObject) });
      },
      {
        access: reading,
        query: inboxQuery,
        response: { 200: listSchema(InboxObject) },
        detail: {
          operationId: "listInbox",
          summary: "List actions of the inbox, oldest first",
          description: "The rejected ones, or with `state` the waiting ones.",
        },
      },
    )
    .get("/status", async () => shown(InboxStatus, await inboxStatus(deps.db)), {
      access: reading,
      response: { 200: InboxStatus },
      detail: {
        operationId: "getInboxStatus",
        summary: "Show how far the inbox is behind",
        description: "Counts of its actions, and the time of the first waiting one.",
      },
    })
    .post(
      "/:id/retry",
      async ({ principal, requestContext, params, status }) => {
        await actions.retryInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: changing,
        body: NO_FIELDS,
        response: { 204: Type.Void() },
        detail: {
          operationId: "retryInboxAction",
          summary: "Take a rejected action over again",
          description: "It takes its old place; 404 if it is not rejected.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, params, status }) => {
        await actions.dropInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: changing,
        response: { 204: Type.Void() },
        detail: {
          operationId: "dropInboxAction",
          summary: "Drop an action of the inbox",
          description: "A rejected one, or a waiting one, which is then not taken over.",
        },
      },
    );
}

function platformRoutes(deps: ServiceRouteDeps) {
  const take = createTaker(deps);
  return new Elysia({ prefix: `${BASE_PATH}/platform`, tags: ["Platform"] })
    .use(deps.checks)
    .post(
      "/actions",
      ({ principal, requestContext, body }) =>
        take({ principal, requestContext, actions: body.actions }),
      {
        access: platformService("actions:write"),
        body: ActionsBody,
        largeBody: BODY_LIMIT,
        rules: ({ body }: RuleInput<typeof ActionsBody>) => actionErrors(deps, body.actions),
        response: { 200: ActionsAnswer },
        detail: {
          operationId: "recordActions",
          summary: "Record actions on reviews and connections",
          description:
            "All or none. Each that changes something is written to the history and queued for webhooks like an action at this API.",
        },
      },
    )
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
            "Tells whose token it is and what it may do now; every invalid one is only inactive.",
        },
      },
    );
}
