import { Type } from "@sinclair/typebox";

import { superAdmin } from "../../auth/guard.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { Answer, route } from "../../http/route.ts";
import * as actions from "../actions/companies.ts";
import type { AdminDeps } from "../actions/deps.ts";
import * as model from "../model.ts";

const partner = {
  type: "partner",
  path: "/admin/partners",
  object: model.PartnerObject,
  show: model.showPartner,
} as const;
const account = {
  type: "account",
  path: "/admin/accounts",
  object: model.AccountObject,
  show: model.showAccount,
} as const;

/** decisions.md 7: partners and accounts. */
export function companyRoutes(deps: AdminDeps) {
  return [
    ...listRoutes(deps),
    ...namingRoutes(deps),
    ...createRoutes(deps),
    ...stateRoutes(deps, partner),
    ...stateRoutes(deps, account),
  ];
}

const key = ({ id }: { id: number }) => String(id);

function listRoutes(deps: AdminDeps) {
  return [
    route({
      method: "GET",
      path: partner.path,
      summary: "List partners, newest first",
      access: superAdmin(),
      query: model.partnerQuery,
      answers: { 200: listSchema(partner.object) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await actions.listCompanies(deps, partner.type, query, page);
        return listOf(rows, page, { key, show: partner.show });
      },
    }),
    route({
      method: "GET",
      path: account.path,
      summary: "List accounts, newest first",
      access: superAdmin(),
      query: model.accountQuery,
      answers: { 200: listSchema(account.object) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await actions.listCompanies(deps, account.type, query, page);
        return listOf(rows, page, { key, show: account.show });
      },
    }),
  ];
}

function namingRoutes(deps: AdminDeps) {
  return [
    route({
      method: "GET",
      path: "/admin/companies/:id",
      summary: "Name a company of any type",
      access: superAdmin(),
      answers: { 200: model.CompanyName },
      find: ({ params }) => actions.nameOfCompany(deps, params["id"]),
      handle: async ({ found }) => found,
    }),
    route({
      method: "GET",
      path: "/admin/plans",
      summary: "List the plans that an account can have",
      access: superAdmin(),
      answers: { 200: Type.Object({ data: Type.Array(model.NamedObject) }) },
      handle: async () => ({ data: await actions.listPlans(deps) }),
    }),
  ];
}

function createRoutes(deps: AdminDeps) {
  return [
    route({
      method: "POST",
      path: partner.path,
      summary: "Create a partner",
      access: superAdmin(),
      body: model.PartnerBody,
      answers: { 201: partner.object },
      rules: ({ body }) => actions.newPartnerFaults(deps, body),
      handle: async ({ principal, call, body }) =>
        new Answer(201, partner.show(await actions.createPartner(deps, { principal, call }, body))),
    }),
    route({
      method: "POST",
      path: account.path,
      summary: "Create an account of a partner, with its stores",
      access: superAdmin(),
      body: model.AccountBody,
      answers: { 201: account.object },
      rules: ({ body }) => actions.newAccountFaults(deps, body),
      handle: async ({ principal, call, body }) =>
        new Answer(201, account.show(await actions.createAccount(deps, { principal, call }, body))),
    }),
  ];
}

function stateRoutes(deps: AdminDeps, kind: typeof partner | typeof account) {
  const { type, path, object } = kind;
  return ([true, false] as const).map((isActive) =>
    route({
      method: "POST",
      path: `${path}/:id/${isActive ? "activate" : "deactivate"}`,
      summary: isActive ? `Activate ${ARTICLE[type]} again` : `Deactivate ${ARTICLE[type]}`,
      description: isActive
        ? "Its users sign in again; tokens of before stay ended."
        : "Ends every token of its users, and of a partner's accounts, at once.",
      access: superAdmin(),
      answers: { 200: object },
      find: ({ params }) => actions.findCompany(deps, type, params["id"]),
      handle: async ({ principal, call, found }) =>
        kind.show(await actions.setCompanyActive(deps, { principal, call }, found, isActive)),
    }),
  );
}

const ARTICLE = { partner: "a partner", account: "an account" } as const;
