import { join } from "../http/join.ts";
import { Elysia } from "elysia";

import { findCompany } from "../tenants/actions/companies.ts";
import type { Company } from "../tenants/model.ts";
import { adminRoutesBase, changing } from "../tenants/routes/base.ts";
import {
  firstHand,
  inPerson,
  partnerAdmin,
  withStepUp,
  withStepUpOfReceivers,
} from "../auth/access/guard.ts";
import { BASE_PATH } from "../http/access.ts";
import { tenantOf } from "../http/principal.ts";
import type { Checks } from "../http/checks.ts";
import { loads } from "../http/request-state.ts";
import { errorResponse } from "../http/errors.ts";
import type { RuleInput } from "../http/rules.ts";
import {
  makeOperatorLink,
  makeOwnLink,
  originErrors,
  PORTAL,
  pageErrors,
  redeemLink,
  showEmbedding,
  updateEmbedding,
  type PortalDeps,
} from "./actions.ts";
import {
  embeddingBody,
  embeddingObject,
  portalLinkAnswer,
  portalLinkBody,
  portalSessionAnswer,
  redeemBody,
} from "./model.ts";

const reading = firstHand(partnerAdmin("*"));
const managing = withStepUpOfReceivers(inPerson(partnerAdmin("*")));

interface PortalRouteDeps extends PortalDeps {
  readonly checks: Checks;
}

/**
 * Defines the routes of portal links, of their sessions, and of the origins that may frame the portal (contract 6.20).
 */
export function portalRoutes(deps: PortalRouteDeps) {
  return join(linkRoutes(deps), operatorRoute(deps), redeemRoute(deps));
}

/** Defines the route with which the page of a portal link exchanges the code of the link for a session. */
function redeemRoute(deps: PortalRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] })
    .use(deps.checks)
    .post(
      `${PORTAL}/:key/session`,
      ({ params: { key }, body: { code }, requestContext }) =>
        redeemLink(deps, { key, code }, requestContext),
      {
        public: true,
        body: redeemBody,
        response: { 200: portalSessionAnswer, 400: errorResponse("invalid_code") },
        detail: {
          operationId: "openPortalSession",
          summary: "Exchange the code of a portal link for a token",
          description: "The page that the link opens calls this operation. A code works once.",
        },
      },
    );
}

function operatorRoute(deps: PortalRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .macro(loads("partner", ({ params }) => findCompany(deps, "partner", params["id"])))
    .post(
      "/:id/portal-links",
      async ({ principal, requestContext, partner, body, status }) =>
        status(201, await makeOperatorLink(deps, { principal, requestContext }, partner.id, body)),
      {
        access: changing,
        partner: true,
        body: portalLinkBody,
        rules: ({
          partner,
          body,
        }: RuleInput<typeof portalLinkBody> & { readonly partner: Company }) =>
          pageErrors(deps, partner.id, body),
        response: { 201: portalLinkAnswer, 409: errorResponse("no_owner", "company_inactive") },
        detail: {
          operationId: "createPartnerPortalLink",
          summary: "Create a portal link to pages of a partner",
          description: "Its session acts as the partner's owner.",
        },
      },
    );
}

function linkRoutes(deps: PortalRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Partner"] })
    .use(deps.checks)
    .post(
      "/partner/portal-links",
      async ({ principal, requestContext, body, status }) =>
        status(201, await makeOwnLink(deps, { principal, requestContext }, body)),
      {
        access: withStepUp(partnerAdmin("webhooks:read")),
        body: portalLinkBody,
        rules: ({ principal, body }: RuleInput<typeof portalLinkBody>) =>
          pageErrors(deps, tenantOf(principal), body),
        response: { 201: portalLinkAnswer },
        detail: {
          operationId: "createPortalLink",
          summary: "Create a portal link",
          description: "The link opens webhook pages in a window or in a frame.",
        },
      },
    )
    .get("/partner/embedding", ({ principal }) => showEmbedding(deps, principal), {
      access: reading,
      response: { 200: embeddingObject },
      detail: {
        operationId: "getEmbedding",
        summary: "List the origins that may frame the portal",
        description: "Empty by default.",
      },
    })
    .patch(
      "/partner/embedding",
      ({ principal, requestContext, body }) =>
        updateEmbedding(deps, { principal, requestContext }, body),
      {
        access: managing,
        body: embeddingBody,
        rules: ({ body }: RuleInput<typeof embeddingBody>) => originErrors(body),
        response: { 200: embeddingObject },
        detail: {
          operationId: "updateEmbedding",
          summary: "Set the origins that may frame the portal",
          description:
            "Origins are https, or http on localhost. Changing them requires a fresh session.",
        },
      },
    );
}
