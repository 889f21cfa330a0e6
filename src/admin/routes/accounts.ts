import { Elysia } from "elysia";

import { finds } from "../../http/finds.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Judged } from "../../http/rules.ts";
import {
  createAccount,
  findCompany,
  listCompanies,
  newAccountFaults,
  setCompanyActive,
} from "../actions/companies.ts";
import { AccountBody, AccountObject, accountQuery, showAccount } from "../model.ts";
import { administrating, adminRoutesBase, changing, type AdminRouteDeps } from "./base.ts";
import { ACTIVATING, DEACTIVATING } from "./companies.ts";

/** Contract 10: accounts. */
export function accountRoutes(deps: AdminRouteDeps) {
  return new Elysia().use(accountListRoutes(deps)).use(accountStateRoutes(deps));
}

function accountListRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/accounts")
    .get(
      "",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await listCompanies(deps, "account", query, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showAccount });
      },
      {
        access: administrating,
        query: accountQuery,
        response: { 200: listSchema(AccountObject) },
        detail: {
          operationId: "listAccounts",
          summary: "List accounts, newest first",
          description: "Of every partner, or of one.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) =>
        status(201, showAccount(await createAccount(deps, { principal, call }, body))),
      {
        access: changing,
        body: AccountBody,
        rules: ({ body }: Judged<typeof AccountBody>) => newAccountFaults(deps, body),
        response: { 201: AccountObject },
        detail: {
          operationId: "createAccount",
          summary: "Create an account of a partner, with its stores",
          description: "All of it or nothing.",
        },
      },
    );
}

function accountStateRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/accounts")
    .macro(finds("account", ({ params }) => findCompany(deps, "account", params["id"])))
    .post(
      "/:id/activate",
      async ({ principal, call, account }) =>
        showAccount(await setCompanyActive(deps, { principal, call }, account, true)),
      {
        access: changing,
        account: true,
        body: NO_FIELDS,
        response: { 200: AccountObject },
        detail: {
          operationId: "activateAccount",
          summary: "Activate an account again",
          description: ACTIVATING,
        },
      },
    )
    .post(
      "/:id/deactivate",
      async ({ principal, call, account }) =>
        showAccount(await setCompanyActive(deps, { principal, call }, account, false)),
      {
        access: changing,
        account: true,
        body: NO_FIELDS,
        response: { 200: AccountObject },
        detail: {
          operationId: "deactivateAccount",
          summary: "Deactivate an account",
          description: DEACTIVATING,
        },
      },
    );
}
