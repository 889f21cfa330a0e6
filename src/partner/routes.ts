import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { AdminDeps } from "../admin/actions/deps.ts";
import { listCompanies } from "../admin/actions/companies.ts";
import { listStores } from "../admin/actions/stores.ts";
import { AccountObject, showAccount } from "../admin/model.ts";
import { showStore, StoreObject, storeQuery } from "../admin/store-model.ts";
import { listAuditOfTenant } from "../audit/actions.ts";
import { auditEntry, showAuditEntry } from "../audit/model.ts";
import {
  apiTokenKey,
  endTeamToken,
  findEndableToken,
  isApiTokenKey,
  listTeamTokens,
} from "../auth/actions/api-tokens.ts";
import { inPerson, partnerAdmin, partnerOwner } from "../auth/guard.ts";
import { showTeamToken, teamTokenObject } from "../auth/token-model.ts";
import { BASE_PATH } from "../http/base-path.ts";
import type { Checks } from "../http/checks.ts";
import { finds } from "../http/finds.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../http/list.ts";
import { partnerOf } from "./actions.ts";
import { ownAccountQuery, ownAuditQuery } from "./model.ts";
import { teamRoutes } from "./routes/team.ts";

export interface PartnerRouteDeps extends AdminDeps {
  readonly checks: Checks;
}

const reading = partnerAdmin("*");
/** For what says who belongs to the partner. */
const managing = inPerson(partnerOwner());

/** Contract 10.5: what a partner sees and does of itself. */
export function partnerRoutes(deps: PartnerRouteDeps) {
  return new Elysia({ name: "partner" })
    .use(teamRoutes(deps, { reading, managing }))
    .use(companyRoutes(deps))
    .use(traceRoutes(deps))
    .use(tokenRoutes(deps));
}

function base({ checks }: Pick<PartnerRouteDeps, "checks">) {
  return new Elysia({ prefix: `${BASE_PATH}/partner`, tags: ["Partner"] }).use(checks);
}

/** The accounts that the partner has, and their stores. */
function companyRoutes(deps: PartnerRouteDeps) {
  return base(deps)
    .get(
      "/accounts",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const filter = { ...query, partner_id: partnerOf(principal) };
        const rows = await listCompanies(deps, "account", filter, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showAccount });
      },
      {
        access: reading,
        query: ownAccountQuery,
        response: { 200: listSchema(AccountObject) },
        detail: {
          operationId: "listOwnAccounts",
          summary: "List the partner's accounts, newest first",
          description: "With their stores.",
        },
      },
    )
    .get(
      "/stores",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const filter = { ...query, partner_id: partnerOf(principal) };
        const rows = await listStores(deps, filter, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showStore });
      },
      {
        access: reading,
        query: storeQuery,
        response: { 200: listSchema(StoreObject) },
        detail: {
          operationId: "listOwnStores",
          summary: "List the partner's stores, newest first",
          description: "Of every account, or of one.",
        },
      },
    );
}

/** What was done in the partner's name. */
function traceRoutes(deps: PartnerRouteDeps) {
  return base(deps).get(
    "/audit-log",
    async ({ principal, query }) => {
      const page = pageOf(query);
      const rows = await listAuditOfTenant(deps.db, partnerOf(principal), query, page);
      return listOf(rows, page, { key: (one) => String(one.id), show: showAuditEntry });
    },
    {
      access: reading,
      query: ownAuditQuery,
      response: { 200: listSchema(auditEntry) },
      detail: {
        operationId: "listOwnAuditLog",
        summary: "List what the people of the partner and of its accounts did, newest first",
        description: "Of one company with `company_id`; one of others finds nothing.",
      },
    },
  );
}

/** The tokens that the partner's people act by apart from a sign-in. */
function tokenRoutes(deps: PartnerRouteDeps) {
  return base(deps)
    .macro(
      finds("token", ({ principal, call, params }) =>
        findEndableToken(deps, { principal, call }, params["id"] ?? ""),
      ),
    )
    .get(
      "/tokens",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listTeamTokens(deps, partnerOf(principal), page);
        return listOf(rows, page, { key: apiTokenKey, show: showTeamToken });
      },
      {
        access: inPerson(reading),
        query: Type.Object(pageQuery(isApiTokenKey)),
        response: { 200: listSchema(teamTokenObject) },
        detail: {
          operationId: "listTeamTokens",
          summary: "List the tokens of the partner's people, newest first",
          description: "Those that live apart from a sign-in, with where they are used.",
        },
      },
    )
    .delete(
      "/tokens/:id",
      async ({ principal, call, token, status }) => {
        await endTeamToken(deps, { principal, call }, token);
        return status(204, undefined);
      },
      {
        access: inPerson(reading),
        token: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "endTeamToken",
          summary: "End a token of the partner's people",
          description: "An owner ends everybody's, an admin their own; what it made ends with it.",
        },
      },
    );
}
