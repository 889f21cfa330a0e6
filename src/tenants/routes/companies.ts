import { join } from "../../http/join.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { loads } from "../../http/request-state.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { RuleInput } from "../../http/rules.ts";
import {
  createAccount,
  createPartner,
  findCompany,
  nameOfCompany,
  accountErrors,
  partnerErrors,
  setCompanyActive,
} from "../actions/companies.ts";
import {
  AccountBody,
  AccountObject,
  accountQuery,
  ActivationBody,
  CompanyName,
  PartnerBody,
  PartnerObject,
  partnerQuery,
  showAccount,
  showPartner,
} from "../model.ts";
import { companiesOf } from "../queries/companies.ts";
import { administrating, type AdminRouteDeps, adminRoutesBase, changing } from "./base.ts";

/** Defines the route that returns the name of a company of any type (contract 10.1). */
export function companyRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "")
    .macro(loads("company", ({ params }) => nameOfCompany(deps, params["id"])))
    .get("/companies/:id", ({ company }) => company, {
      access: administrating,
      auditedRead: "companies",
      company: true,
      response: { 200: CompanyName },
      detail: {
        operationId: "getCompany",
        summary: "Get the name of a company of any type",
        description: "Returns its name and type.",
      },
    });
}

/** OpenAPI descriptions of activations and deactivations. The routes of partners and those of accounts share them. */
const ACTIVATION_TEXT = "Earlier tokens stay revoked. `held` says what becomes of held events.";
const DEACTIVATION_TEXT = "Ends all access of its users, and holds its webhook events.";

/** Defines the administrative routes for partners (contract 10). */
export function partnerRoutes(deps: AdminRouteDeps) {
  return join(partnerListRoutes(deps), partnerStateRoutes(deps));
}

function partnerListRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await companiesOf(deps.db, "partner", query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showPartner });
      },
      {
        access: administrating,
        auditedRead: "partners",
        query: partnerQuery,
        response: { 200: listSchema(PartnerObject) },
        detail: {
          operationId: "listPartners",
          summary: "List partners, newest first",
          description: "Filters: name and state.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(201, showPartner(await createPartner(deps, { principal, requestContext }, body))),
      {
        access: changing,
        body: PartnerBody,
        rules: ({ body }: RuleInput<typeof PartnerBody>) => partnerErrors(deps, body),
        response: { 201: PartnerObject },
        detail: {
          operationId: "createPartner",
          summary: "Create a partner",
          description: "The partner is active immediately.",
        },
      },
    );
}

function partnerStateRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/partners")
    .macro(loads("partner", ({ params }) => findCompany(deps, "partner", params["id"])))
    .post(
      "/:id/activate",
      async ({ principal, requestContext, partner, body: { held = "deliver" } }) =>
        showPartner(await setCompanyActive(deps, { principal, requestContext }, partner, { held })),
      {
        access: { ...changing, mayBeEmpty: true },
        partner: true,
        body: ActivationBody,
        response: { 200: PartnerObject, 409: errorResponse("deletion_requested") },
        detail: {
          operationId: "activatePartner",
          summary: "Activate a partner again",
          description: ACTIVATION_TEXT,
        },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, requestContext, partner }) =>
        showPartner(await setCompanyActive(deps, { principal, requestContext }, partner)),
      {
        access: changing,
        partner: true,
        body: NO_FIELDS,
        response: { 200: PartnerObject },
        detail: {
          operationId: "deactivatePartner",
          summary: "Deactivate a partner",
          description: DEACTIVATION_TEXT,
        },
      },
    );
}

/** Defines the administrative routes for accounts of partners (contract 10). */
export function accountRoutes(deps: AdminRouteDeps) {
  return join(accountListRoutes(deps), accountStateRoutes(deps));
}

function accountListRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/accounts")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await companiesOf(deps.db, "account", query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showAccount });
      },
      {
        access: administrating,
        auditedRead: "accounts",
        query: accountQuery,
        response: { 200: listSchema(AccountObject) },
        detail: {
          operationId: "listAccounts",
          summary: "List accounts, newest first",
          description: "`partner_id` restricts the list.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(201, showAccount(await createAccount(deps, { principal, requestContext }, body))),
      {
        access: changing,
        body: AccountBody,
        rules: ({ body }: RuleInput<typeof AccountBody>) => accountErrors(deps, body),
        response: { 201: AccountObject },
        detail: {
          operationId: "createAccount",
          summary: "Create an account of a partner, with its stores",
          description: "Creates the account with all stores, or nothing.",
        },
      },
    );
}

function accountStateRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/accounts")
    .macro(loads("account", ({ params }) => findCompany(deps, "account", params["id"])))
    .post(
      "/:id/activate",
      async ({ principal, requestContext, account, body: { held = "deliver" } }) =>
        showAccount(await setCompanyActive(deps, { principal, requestContext }, account, { held })),
      {
        access: { ...changing, mayBeEmpty: true },
        account: true,
        body: ActivationBody,
        response: { 200: AccountObject, 409: errorResponse("deletion_requested") },
        detail: {
          operationId: "activateAccount",
          summary: "Activate an account again",
          description: ACTIVATION_TEXT,
        },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, requestContext, account }) =>
        showAccount(await setCompanyActive(deps, { principal, requestContext }, account)),
      {
        access: changing,
        account: true,
        body: NO_FIELDS,
        response: { 200: AccountObject },
        detail: {
          operationId: "deactivateAccount",
          summary: "Deactivate an account",
          description: DEACTIVATION_TEXT,
        },
      },
    );
}
