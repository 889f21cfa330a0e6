import { finds } from "../../http/finds.ts";
import { nameOfCompany } from "../actions/companies.ts";
import { CompanyName } from "../model.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps } from "./base.ts";

/** Contract 10.1: what is asked of companies of any type. */
export function companyRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "")
    .macro(finds("company", ({ params }) => nameOfCompany(deps, params["id"])))
    .get("/companies/:id", ({ company }) => company, {
      access: administrating,
      company: true,
      response: { 200: CompanyName },
      detail: {
        operationId: "getCompany",
        summary: "Name a company of any type",
        description: "What it is called, and of which type it is.",
      },
    });
}

/** The words of the routes that activate and deactivate a partner or an account. */
export const ACTIVATING = "Its users sign in again; tokens of before stay ended.";
export const DEACTIVATING = "Ends every token of its users, and of a partner's accounts, at once.";
