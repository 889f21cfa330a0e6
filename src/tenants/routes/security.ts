import { join } from "../../http/join.ts";
import { Elysia } from "elysia";

import { accountOwner, inPerson, partnerOwner, withStepUp } from "../../auth/guard.ts";
import { type Access, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { changeSecurity, type SecurityDeps } from "../actions/security.ts";
import { SecurityBody, SecurityObject } from "../security-model.ts";
import { requiresSecondFactor } from "../queries/companies.ts";

interface SecurityRouteDeps extends SecurityDeps {
  readonly checks: Checks;
}

/** Defines the routes with which an Owner requires a second factor of the company's people (contract 4.27). */
export function securityRoutes(deps: SecurityRouteDeps) {
  const partner = { path: "/partner/security", tag: "Partner", name: "partner" } as const;
  const account = { path: "/account/security", tag: "Self-service", name: "account" } as const;
  return join(
    routesOf(deps, { ...partner, access: inPerson(partnerOwner()) }),
    routesOf(deps, { ...account, access: inPerson(accountOwner()) }),
  );
}

interface Tenant<P extends `/${string}`> {
  readonly path: P;
  readonly tag: string;
  readonly name: "partner" | "account";
  readonly access: Access;
}

function routesOf<const P extends `/${string}`>(
  deps: SecurityRouteDeps,
  { path, tag, name, access }: Tenant<P>,
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
          summary: `Show what the ${name} requires of its people`,
          description: "For its Owners.",
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
          summary: `Require a second factor of the people of the ${name}`,
          description: "Sessions that are open stay open, and are not fresh.",
        },
      },
    );
}
