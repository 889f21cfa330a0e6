import { Elysia } from "elysia";

import { findCompany } from "../admin/actions/companies.ts";
import type { Company } from "../admin/model.ts";
import { adminRoutesBase, changing } from "../admin/routes/base.ts";
import { firstHand, inPerson, partnerAdmin } from "../auth/guard.ts";
import { BASE_PATH } from "../http/base-path.ts";
import type { Checks } from "../http/checks.ts";
import { finds } from "../http/finds.ts";
import { problem } from "../http/problem-schema.ts";
import type { Judged } from "../http/rules.ts";
import {
  makeOperatorLink,
  makeOwnLink,
  originFaults,
  PORTAL,
  pageFaults,
  redeemLink,
  showEmbedding,
  updateEmbedding,
  type PortalDeps,
} from "./actions.ts";
import { tenantOf } from "../webhooks/actions/deps.ts";
import {
  embeddingBody,
  embeddingObject,
  portalLinkAnswer,
  portalLinkBody,
  portalSessionAnswer,
  redeemBody,
} from "./model.ts";

const reading = firstHand(partnerAdmin("*"));
const managing = inPerson(partnerAdmin("*"));

interface PortalRouteDeps extends PortalDeps {
  readonly checks: Checks;
}

/** See contract 6.20. */
export function portalRoutes(deps: PortalRouteDeps) {
  return new Elysia().use(linkRoutes(deps)).use(operatorRoute(deps)).use(redeemRoute(deps));
}

/** It belongs to the page that is opened, and is no part of the API. */
function redeemRoute(deps: PortalRouteDeps) {
  return new Elysia({ detail: { hide: true } })
    .use(deps.checks)
    .post(`${PORTAL}/:key/session`, ({ body, call }) => redeemLink(deps, body.code, call), {
      public: true,
      body: redeemBody,
      response: { 200: portalSessionAnswer, 400: problem("invalid_code") },
    });
}

function operatorRoute(deps: PortalRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .macro(finds("partner", ({ params }) => findCompany(deps, "partner", params["id"])))
    .post(
      "/:id/portal-links",
      async ({ principal, call, partner, body, status }) =>
        status(201, await makeOperatorLink(deps, { principal, call }, partner.id, body)),
      {
        access: changing,
        partner: true,
        body: portalLinkBody,
        rules: ({ partner, body }: Judged<typeof portalLinkBody> & { readonly partner: Company }) =>
          pageFaults(deps, partner.id, body),
        response: { 201: portalLinkAnswer, 409: problem("no_owner") },
        detail: {
          operationId: "createPartnerPortalLink",
          summary: "Make a link to pages of a partner",
          description: "In the name of an owner.",
        },
      },
    );
}

function linkRoutes(deps: PortalRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Partner"] })
    .use(deps.checks)
    .post(
      "/partner/portal-links",
      async ({ principal, call, body, status }) =>
        status(201, await makeOwnLink(deps, { principal, call }, body)),
      {
        access: partnerAdmin("webhooks:read"),
        body: portalLinkBody,
        rules: ({ principal, body }: Judged<typeof portalLinkBody>) =>
          pageFaults(deps, tenantOf(principal), body),
        response: { 201: portalLinkAnswer },
        detail: {
          operationId: "createPortalLink",
          summary: "Make a link to pages of the dashboard",
          description: "In a window or in a frame.",
        },
      },
    )
    .get("/partner/embedding", ({ principal }) => showEmbedding(deps, principal), {
      access: reading,
      response: { 200: embeddingObject },
      detail: {
        operationId: "getEmbedding",
        summary: "Show who may frame the portal",
        description: "None at first.",
      },
    })
    .patch(
      "/partner/embedding",
      ({ principal, call, body }) => updateEmbedding(deps, { principal, call }, body),
      {
        access: managing,
        body: embeddingBody,
        rules: ({ body }: Judged<typeof embeddingBody>) => originFaults(body),
        response: { 200: embeddingObject },
        detail: {
          operationId: "updateEmbedding",
          summary: "Say who may frame the portal",
          description: "https, or http on localhost.",
        },
      },
    );
}
