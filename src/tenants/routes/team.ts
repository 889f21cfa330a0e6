import { join } from "../../http/join.ts";
import { Elysia } from "elysia";

import { exportAudit } from "../../audit/export.ts";
import { listAuditOfTenant } from "../../audit/queries.ts";
import { auditEntry, AuditExport, auditExportQuery, auditQuery } from "../../audit/model.ts";
import { inPerson, partnerAdmin, partnerOwner, withStepUp } from "../../auth/access/guard.ts";
import { teamAccessRoutes } from "../../auth/team-routes.ts";
import { type Access, BASE_PATH } from "../../http/access.ts";
import { errorResponse } from "../../http/errors.ts";
import { loads } from "../../http/request-state.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { searchPageAnswer, listOf, listSchema, pageOf } from "../../http/list.ts";
import { shown, shownAs } from "../../http/shown.ts";
import type { Config } from "../../lib/config.ts";
import type { RuleInput } from "../../http/rules.ts";
import type { AdminDeps } from "../actions/deps.ts";
import * as users from "../actions/users.ts";
import { partnerOf } from "../actions/users.ts";
import {
  AccountObject,
  ownAccountQuery,
  RoleBody,
  showAccount,
  TeammateBody,
  teamQuery,
  UserObject,
} from "../model.ts";
import { companiesOf } from "../queries/companies.ts";
import { storesOf } from "../queries/stores.ts";
import { storePage } from "./stores.ts";
import { StoreObject, storeQuery } from "../store-model.ts";
import { type IntegrationRouteDeps, integrationRoutes } from "./integrations.ts";
import { securityRoutes } from "./security.ts";

interface TeamAccess {
  readonly reading: Access;
  readonly managing: Access;
}

/** Defines the routes for the users of the caller's partner (contract 10.5). */
function teamRoutes(deps: PartnerRouteDeps, access: TeamAccess) {
  return join(
    teamListRoutes(deps, access),
    roleAndInvitationRoutes(deps, access),
    stateRoutes(deps, access),
  );
}

function teamBase(deps: PartnerRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/users`, tags: ["Partner"] })
    .use(deps.checks)
    .macro(
      loads("user", ({ principal, requestContext, params }) =>
        users.findTeammate(deps, { principal, requestContext }, params["id"]),
      ),
    );
}

function teamListRoutes(deps: PartnerRouteDeps, { reading, managing }: TeamAccess) {
  return teamBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await users.listTeam(deps, principal, query, page);
        return searchPageAnswer(found, page, {
          key: ({ id }) => String(id),
          show: shownAs(UserObject),
        });
      },
      {
        access: reading,
        query: teamQuery,
        response: { 200: listSchema(UserObject) },
        detail: {
          operationId: "listTeam",
          summary: "List the partner's own users, newest first",
          description: "Excludes the users of its accounts.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          shown(
            UserObject,
            await users.createUser(
              deps,
              { principal, requestContext },
              { ...body, company_id: partnerOf(principal) },
            ),
          ),
        ),
      {
        access: managing,
        body: TeammateBody,
        rules: ({ body, principal }: RuleInput<typeof TeammateBody>) =>
          users.newTeammateErrors(deps, principal, body),
        response: { 201: UserObject, 409: errorResponse("limit_reached") },
        detail: {
          operationId: "inviteTeammate",
          summary: "Invite a user to the partner",
          description: "The mail has a link to a password form or to single sign-on.",
        },
      },
    );
}

function roleAndInvitationRoutes(deps: PartnerRouteDeps, { managing }: TeamAccess) {
  return teamBase(deps)
    .post(
      "/:id/role",
      async ({ principal, requestContext, user, body }) =>
        shown(
          UserObject,
          await users.setUserRole(deps, { principal, requestContext }, user, body.role),
        ),
      {
        access: managing,
        user: true,
        body: RoleBody,
        response: { 200: UserObject, 409: errorResponse("last_owner", "user_erased") },
        detail: {
          operationId: "setTeamRole",
          summary: "Change the role of a user of the partner",
          description: "The new role applies from the next request on.",
        },
      },
    )
    .post(
      "/:id/invite",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await users.inviteAgain(deps, { principal, requestContext }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: {
          200: UserObject,
          409: errorResponse("not_invitable", "limit_reached", "company_inactive"),
        },
        detail: {
          operationId: "inviteTeammateAgain",
          summary: "Send another invitation",
          description: "Earlier links stop working.",
        },
      },
    );
}

function stateRoutes(deps: PartnerRouteDeps, { managing }: TeamAccess) {
  return teamBase(deps)
    .post(
      "/:id/deactivate",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await users.deactivateUser(deps, { principal, requestContext }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: errorResponse("last_owner") },
        detail: {
          operationId: "deactivateTeammate",
          summary: "Deactivate a user of the partner",
          description: "Revokes all tokens of the user immediately.",
        },
      },
    )
    .post(
      "/:id/activate",
      async ({ principal, requestContext, user }) =>
        shown(UserObject, await users.activateUser(deps, { principal, requestContext }, user)),
      {
        access: managing,
        user: true,
        body: NO_FIELDS,
        response: { 200: UserObject, 409: errorResponse("user_erased") },
        detail: {
          operationId: "activateTeammate",
          summary: "Activate a user of the partner again",
          description: "Earlier tokens stay revoked.",
        },
      },
    );
}

export interface PartnerRouteDeps extends IntegrationRouteDeps {
  readonly config: AdminDeps["config"] & Pick<Config, "sessionLimits">;
}

const reading = partnerAdmin("*");
/**
 * Access rule for changes of a partner's users: an owner in person, because such a change decides who has access to the
 * partner's data.
 */
const managing = withStepUp(inPerson(partnerOwner()));

/**
 * Defines the routes for a partner's own team, accounts, stores, audit log, sign-ins, tokens and integrations (contract
 * 10.5 and 10.10).
 */
export function partnerRoutes(deps: PartnerRouteDeps) {
  return join(
    teamRoutes(deps, { reading, managing }),
    companyRoutes(deps),
    auditRoutes(deps),
    teamAccessRoutes(deps),
    securityRoutes(deps),
    integrationRoutes(deps),
  );
}

function partnerBase({ checks }: Pick<PartnerRouteDeps, "checks">) {
  return new Elysia({ prefix: `${BASE_PATH}/partner`, tags: ["Partner"] }).use(checks);
}

/** Defines the routes that list the accounts of the caller's partner and the stores of these accounts. */
function companyRoutes(deps: PartnerRouteDeps) {
  return partnerBase(deps)
    .get(
      "/accounts",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const filter = { ...query, partner_id: partnerOf(principal) };
        const rows = await companiesOf(deps.db, "account", filter, page);
        return listOf(rows, page, { key: ({ id }) => String(id), show: showAccount });
      },
      {
        access: reading,
        query: ownAccountQuery,
        response: { 200: listSchema(AccountObject) },
        detail: {
          operationId: "listOwnAccounts",
          summary: "List the partner's accounts, newest first",
          description: "Includes their stores.",
        },
      },
    )
    .get(
      "/stores",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const filter = { ...query, partner_id: partnerOf(principal) };
        return storePage(deps, await storesOf(deps.db, filter, page), page);
      },
      {
        access: reading,
        query: storeQuery,
        response: { 200: listSchema(StoreObject) },
        detail: {
          operationId: "listOwnStores",
          summary: "List the partner's stores, newest first",
          description: "`account_id` restricts the list.",
        },
      },
    );
}

/**
 * Defines the routes for the audit log of the caller's partner and its accounts. For a `company_id` outside of the
 * partner, the list is empty.
 */
function auditRoutes(deps: PartnerRouteDeps) {
  return partnerBase(deps)
    .get(
      "/audit-log",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const found = await listAuditOfTenant(deps.db, partnerOf(principal), query, page);
        return searchPageAnswer(found, page, {
          key: (one) => String(one.id),
          show: shownAs(auditEntry),
        });
      },
      {
        access: reading,
        query: auditQuery,
        response: { 200: listSchema(auditEntry) },
        detail: {
          operationId: "listOwnAuditLog",
          summary: "List the audit log of the partner and its accounts, newest first",
          description: "Without what operators did.",
        },
      },
    )
    .get(
      "/audit-log/export",
      async ({ principal, requestContext, query }) =>
        exportAudit(deps, { principal, requestContext }, query, partnerOf(principal)),
      {
        access: reading,
        query: auditExportQuery,
        response: { 200: AuditExport, 503: errorResponse("unavailable") },
        detail: {
          operationId: "exportOwnAuditLog",
          summary: "Export the audit log of the partner and its accounts as NDJSON, oldest first",
          description: "Continue with `after` to get every row once.",
        },
      },
    );
}
