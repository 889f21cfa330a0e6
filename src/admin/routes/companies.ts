import { Type } from "@sinclair/typebox";

import { finds } from "../../http/finds.ts";
import { listPlans, nameOfCompany } from "../actions/companies.ts";
import { CompanyName, NamedObject } from "../model.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps } from "./base.ts";

/** Contract 10.1: what is asked of companies of any type, and of the plans that accounts have. */
export function companyRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "")
    .macro(finds("company", ({ params }) => nameOfCompany(deps, params["id"])))
    .get("/companies/:id", ({ company }) => company, {
      access: administrating,
      company: true,
      response: { 200: CompanyName },
      detail: { summary: "Name a company of any type" },
    })
    .get("/plans", async () => ({ data: await listPlans(deps) }), {
      access: administrating,
      response: { 200: Type.Object({ data: Type.Array(NamedObject) }) },
      detail: { summary: "List the plans that an account can have" },
    });
}

/** The words of the routes that activate and deactivate a partner or an account. */
export const ACTIVATING = "Its users sign in again; tokens of before stay ended.";
export const DEACTIVATING = "Ends every token of its users, and of a partner's accounts, at once.";
