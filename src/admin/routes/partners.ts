import { Elysia } from "elysia";

import { finds } from "../../http/finds.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Judged } from "../../http/rules.ts";
import {
  createPartner,
  findCompany,
  listCompanies,
  newPartnerFaults,
  setCompanyActive,
} from "../actions/companies.ts";
import { PartnerBody, PartnerObject, partnerQuery, showPartner } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";
import { ACTIVATING, DEACTIVATING } from "./companies.ts";

/** Contract 10: partners. */
export function partnerRoutes(deps: AdminRouteDeps) {
  return new Elysia().use(partnerListRoutes(deps)).use(partnerStateRoutes(deps));
}

function partnerListRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await listCompanies(deps, "partner", query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showPartner });
      },
      {
        access: administrating,
        query: partnerQuery,
        response: { 200: listSchema(PartnerObject) },
        detail: {
          operationId: "listPartners",
          summary: "List partners, newest first",
          description: "Filtered by name and state.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, showPartner(await createPartner(deps, { principal, call }, body))),
      {
        access: changing,
        body: PartnerBody,
        rules: ({ body }: Judged<typeof PartnerBody>) => newPartnerFaults(deps, body),
        response: { 201: PartnerObject },
        detail: {
          operationId: "createPartner",
          summary: "Create a partner",
          description: "With its branding, and active.",
        },
      },
    );
}

function partnerStateRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .macro(finds("partner", ({ params }) => findCompany(deps, "partner", params["id"])))
    .post(
      "/:id/activate",
      async ({ principal, call, partner }) =>
        showPartner(await setCompanyActive(deps, { principal, call }, partner, true)),
      {
        access: changing,
        partner: true,
        body: NO_FIELDS,
        response: { 200: PartnerObject },
        detail: {
          operationId: "activatePartner",
          summary: "Activate a partner again",
          description: ACTIVATING,
        },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, call, partner }) =>
        showPartner(await setCompanyActive(deps, { principal, call }, partner, false)),
      {
        access: changing,
        partner: true,
        body: NO_FIELDS,
        response: { 200: PartnerObject },
        detail: {
          operationId: "deactivatePartner",
          summary: "Deactivate a partner",
          description: DEACTIVATING,
        },
      },
    );
}
