import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { recordCompanyRead } from "../../auth/actions/tenant-reads.ts";
import { inPerson, partnerOwner, superAdmin, withStepUp } from "../../auth/guard.ts";
import { type Access, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { join } from "../../http/join.ts";
import { findRow, listOf, listSchema, pageOf } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { loads } from "../../http/request-state.ts";
import { shownAs } from "../../http/shown.ts";
import { findTeammate, findUser } from "../../tenants/actions/users.ts";
import type { User } from "../../tenants/model.ts";
import { type IdentityDeps, unlinkIdentity } from "../actions/identities.ts";
import { identitiesQuery, identityObject, type IdentityRow } from "../model.ts";
import { findIdentity, identitiesOf } from "../queries/identities.ts";

interface IdentityRouteDeps extends IdentityDeps {
  readonly checks: Checks;
}

interface Realm<P extends `/${string}`> {
  /** The path of the users below the base path of the API. */
  readonly path: P;
  readonly tag: string;
  /** The user in names of operations and in summaries. */
  readonly operation: string;
  readonly name: string;
  readonly access: Access;
  readonly find: (caller: Caller, id: string | undefined) => Promise<User>;
  /** Records that the caller reads data of a tenant. */
  readonly onRead?: (caller: Caller, user: User) => Promise<void>;
}

/** Defines the routes for the identities of users at identity providers (contract 4.13, 10.1 and 10.5). */
export function identityRoutes(deps: IdentityRouteDeps) {
  return join(
    routesOf(deps, {
      path: "/admin/users",
      tag: "Administration",
      operation: "User",
      name: "user",
      access: superAdmin(),
      find: (_, id) => findUser(deps, id),
      onRead: (caller, { companyId }) =>
        recordCompanyRead(deps, caller, { companyId, kind: "users" }),
    }),
    routesOf(deps, {
      path: "/partner/users",
      tag: "Partner",
      operation: "Teammate",
      name: "partner's user",
      access: inPerson(partnerOwner()),
      find: (caller, id) => findTeammate(deps, caller, id),
    }),
  );
}

function routesOf<const P extends `/${string}`>(deps: IdentityRouteDeps, realm: Realm<P>) {
  const { path, tag, operation, name, access, find, onRead } = realm;
  return new Elysia({ prefix: `${BASE_PATH}${path}`, tags: [tag] })
    .use(deps.checks)
    .macro(
      loads("user", ({ principal, requestContext, params }) =>
        find({ principal, requestContext }, params["id"]),
      ),
    )
    .macro(
      loads("linked", async ({ principal, requestContext, params }): Promise<Linked> => {
        const user = await find({ principal, requestContext }, params["id"]);
        const identity = await findRow(params["identityId"], (id) =>
          findIdentity(deps.db, user.id, id),
        );
        return { user, identity };
      }),
    )
    .get(
      "/:id/identities",
      async ({ principal, requestContext, query, user }) => {
        const page = pageOf(query);
        const rows = await identitiesOf(deps.db, user.id, page);
        await onRead?.({ principal, requestContext }, user);
        return listOf(rows, page, {
          key: ({ id }) => String(id),
          show: shownAs(identityObject),
        });
      },
      {
        access,
        user: true,
        query: identitiesQuery,
        response: { 200: listSchema(identityObject) },
        detail: {
          operationId: `list${operation}Identities`,
          summary: `List the identities of a ${name} at identity providers, newest first`,
          description: "Each signs the user in by single sign-on.",
        },
      },
    )
    .delete(
      "/:id/identities/:identityId",
      async ({ principal, requestContext, linked, status }) => {
        await unlinkIdentity(deps, { principal, requestContext }, linked);
        return status(204, undefined);
      },
      {
        access: withStepUp(inPerson(access)),
        linked: true,
        response: { 204: Type.Void(), 409: errorResponse("last_owner") },
        detail: {
          operationId: `unlink${operation}Identity`,
          summary: `Unlink a ${name} from an identity`,
          description:
            "Ends the user's sessions from single sign-on. The next sign-in with a verified address links anew.",
        },
      },
    );
}

interface Linked {
  readonly user: User;
  readonly identity: IdentityRow;
}
