import type { Static } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import { accountOwner, inPerson, partnerOwner, withStepUp } from "../../auth/access/guard.ts";
import { hasFactor } from "../../auth/factors/second-step.ts";
import { holdCaller } from "../../auth/sign-in/open-session.ts";
import { type Access, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { join } from "../../http/join.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { requiresSecondFactor, updateCompany } from "../queries/companies.ts";
import { lockRecord } from "../queries/records.ts";
import { SecurityBody, SecurityObject } from "../security-model.ts";

interface SecurityRouteDeps extends SecurityDeps {
  readonly checks: Checks;
}

/** Defines the routes with which an owner requires a second factor of the company's users (contract 4.27). */
export function securityRoutes(deps: SecurityRouteDeps) {
  const partner = { path: "/partner/security", tag: "Partner", name: "partner" } as const;
  const account = { path: "/account/security", tag: "Self-service", name: "account" } as const;
  return join(
    routesOf(deps, { ...partner, access: inPerson(partnerOwner()) }),
    routesOf(deps, { ...account, access: inPerson(accountOwner()) }),
  );
}

interface TenantRoutes<P extends `/${string}`> {
  readonly path: P;
  readonly tag: string;
  readonly name: "partner" | "account";
  readonly access: Access;
}

function routesOf<const P extends `/${string}`>(
  deps: SecurityRouteDeps,
  { path, tag, name, access }: TenantRoutes<P>,
) {
  const operation = name === "partner" ? "OwnSecurity" : "AccountSecurity";
  return new Elysia({ prefix: `${BASE_PATH}${path}` as const, tags: [tag] })
    .use(deps.checks)
    .get(
      "",
      async ({ principal }) => ({
        require_second_factor: await requiresSecondFactor(deps.db, principal.companyId),
      }),
      {
        access,
        response: { 200: SecurityObject },
        detail: {
          operationId: `get${operation}`,
          summary: `Show the security settings of the ${name}`,
          description: "Only for its owners.",
        },
      },
    )
    .patch(
      "",
      ({ principal, requestContext, body }) =>
        changeSecurity(deps, { principal, requestContext }, body),
      {
        access: withStepUp(access),
        body: SecurityBody,
        response: { 200: SecurityObject, 409: errorResponse("no_second_factor") },
        detail: {
          operationId: `update${operation}`,
          summary: `Require a second factor for the users of the ${name}`,
          description: "Current sessions stay active, but are not fresh.",
        },
      },
    );
}

interface SecurityDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Changes the security settings of a company. An owner who requires a second factor must have one, or must have signed
 * in through an identity provider. Otherwise the owners could lock themselves out.
 */
async function changeSecurity(
  { db, clock }: SecurityDeps,
  { principal: actor, requestContext }: Caller,
  { require_second_factor: to }: Static<typeof SecurityBody>,
): Promise<Static<typeof SecurityObject>> {
  const at = clock.now();
  const { companyId, userId, signInMethod } = actor;
  return db.transaction(async (tx) => {
    await holdCaller(tx, actor);
    if (to && signInMethod !== "sso" && !(await hasFactor(tx, userId)))
      throw new Problem("no_second_factor");
    await lockRecord(tx, { table: "companies", id: companyId });
    const from = await requiresSecondFactor(tx, companyId);
    if (from !== to) {
      await updateCompany(tx, companyId, { requireSecondFactor: to });
      const changes = { require_second_factor: { from, to } };
      const details = { company_id: companyId, changes };
      const action = "SECOND_FACTOR_POLICY";
      await recordAudit(tx, { at, action, actor, requestContext, details });
    }
    return { require_second_factor: to };
  });
}
