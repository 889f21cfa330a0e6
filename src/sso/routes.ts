import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import type { Db } from "../../db/client.ts";
import { recordAudit } from "../audit/queries.ts";
import { inPerson, partnerOwner, superAdmin, withStepUp } from "../auth/access/guard.ts";
import { recordCompanyRead } from "../auth/access/tenant-reads.ts";
import { loginAnswer } from "../auth/model.ts";
import { endSsoAccess } from "../auth/sign-in/sessions.ts";
import { BASE_PATH, type Access } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { findRow } from "../http/ids.ts";
import { join } from "../http/join.ts";
import { listOf, listSchema, pageOf } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import { loads } from "../http/request-state.ts";
import type { RuleInput } from "../http/rules.ts";
import { shownAs } from "../http/shown.ts";
import type { Clock } from "../lib/clock.ts";
import { Problem } from "../lib/problem.ts";
import { holdSignIns } from "../tenants/actions/last-owner.ts";
import { findTeammate, findUser } from "../tenants/actions/users.ts";
import type { User } from "../tenants/model.ts";
import { beginSso, redirectErrors } from "./actions/begin-sso.ts";
import type { SsoDeps } from "./actions/deps.ts";
import { exchangeCode } from "./actions/exchange-code.ts";
import { finishSso } from "./actions/finish-sso.ts";
import { browserCookie } from "./browser.ts";
import {
  callbackQuery,
  exchangeQuery,
  redirectQuery,
  identitiesQuery,
  identityObject,
  type IdentityRow,
} from "./model.ts";
import { shareConnection } from "./queries/connections.ts";
import { findIdentity, identitiesOf, canLink, deleteIdentity } from "./queries/sign-ins.ts";
import { type ConnectionRouteDeps, connectionRoutes } from "./routes/connections.ts";

interface LegRouteDeps extends SsoDeps {
  readonly checks: Checks;
}

interface SsoRouteDeps extends LegRouteDeps, ConnectionRouteDeps {
  readonly config: LegRouteDeps["config"] & ConnectionRouteDeps["config"];
}

const PREFIX = `${BASE_PATH}/auth/sso`;
const REDIRECT = "/redirect";
const CALLBACK = "/callback/:connection";
const EXCHANGE = "/exchange";
/**
 * The GET routes that create or consume a state or a one-time code. They must not accept HEAD, because clients expect
 * HEAD to have no effect.
 */
export const SSO_LEGS = [REDIRECT, CALLBACK, EXCHANGE].map((leg) => PREFIX + leg);

/** Defines all routes of single sign-on (contract 4.13). */
export function ssoRoutes(deps: SsoRouteDeps) {
  return join(
    redirectRoute(deps),
    callbackRoutes(deps),
    connectionRoutes(deps),
    identityRoutes(deps),
  );
}

/** Defines the first step of a single sign-on, the redirect to the identity provider. */
function redirectRoute(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] }).use(deps.checks).get(
    REDIRECT,
    async ({ query, requestContext, set }) => {
      const known = browserSecret.read(requestContext.headers);
      const { location, browser } = await beginSso(deps, { query, known }, requestContext);
      set.status = 302;
      Object.assign(set.headers, redirectHeaders(location));
      if (browser !== undefined) set.headers["set-cookie"] = browserSecret.write(browser);
    },
    {
      public: true,
      query: redirectQuery,
      rules: ({ query }: RuleInput<never, typeof redirectQuery>) => redirectErrors(deps, query),
      response: { 302: Type.Void() },
      detail: {
        operationId: "beginSso",
        summary: "Send the browser to the identity provider of an email domain",
        description:
          "Requires `email` or `connection`. A successful sign-in returns to `return_to` (default: the dashboard) with a one-time `code`. A failed one returns to the dashboard with `error=sso_failed`.",
      },
    },
  );
}

/**
 * Defines the later steps of a single sign-on: the callback from the identity provider, and the exchange of the
 * one-time code for a token.
 */
function callbackRoutes(deps: LegRouteDeps) {
  const browserSecret = browserCookie(deps.config);
  return new Elysia({ prefix: PREFIX, tags: ["Sign-in"] })
    .use(deps.checks)
    .get(
      CALLBACK,
      async ({ params, query, requestContext, set }) => {
        const browser = browserSecret.read(requestContext.headers);
        const answered = { connectionId: params.connection, query, browser };
        const location = await finishSso(deps, answered, requestContext);
        set.status = 302;
        Object.assign(set.headers, redirectHeaders(location));
      },
      {
        public: true,
        query: callbackQuery,
        response: { 302: Type.Void() },
        detail: {
          operationId: "returnFromSso",
          summary: "Receive the response of an identity provider",
          description: "Works once, in the browser that started the sign-in.",
        },
      },
    )
    .get(EXCHANGE, ({ query, requestContext }) => exchangeCode(deps, query, requestContext), {
      public: { isSignIn: true },
      query: exchangeQuery,
      response: { 200: loginAnswer, 400: errorResponse("invalid_code") },
      detail: {
        operationId: "exchangeSsoCode",
        summary: "Exchange the one-time code of a single sign-on for a token",
        description:
          "The code works once, within 60 seconds. Send the `code_verifier` if the sign-in had a challenge.",
      },
    });
}

/**
 * Returns the headers of a redirect. The URL may contain a code or a state. `no-referrer` keeps browsers from sending
 * it to the next page in the Referer header.
 */
function redirectHeaders(location: string) {
  return { location, "referrer-policy": "no-referrer" };
}

interface IdentityRouteDeps extends IdentityDeps {
  readonly checks: Checks;
}

interface UserRealm<P extends `/${string}`> {
  /** The path of the users, relative to the base path of the API. */
  readonly path: P;
  readonly tag: string;
  /** The word for a user in operation ids; `name` is the word in OpenAPI summaries. */
  readonly operation: string;
  readonly name: string;
  readonly access: Access;
  readonly find: (caller: Caller, id: string | undefined) => Promise<User>;
  /**
   * Records in the audit log that the caller reads data of a tenant. Absent for routes whose callers belong to the
   * tenant.
   */
  readonly onRead?: (caller: Caller, user: User) => Promise<void>;
}

/** Defines the routes for the identities of users at identity providers (contract 4.13, 10.1 and 10.5). */
function identityRoutes(deps: IdentityRouteDeps) {
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

function routesOf<const P extends `/${string}`>(deps: IdentityRouteDeps, realm: UserRealm<P>) {
  const { path, tag, operation, name, access, find, onRead } = realm;
  return new Elysia({ prefix: `${BASE_PATH}${path}`, tags: [tag] })
    .use(deps.checks)
    .macro(
      loads("user", ({ principal, requestContext, params }) =>
        find({ principal, requestContext }, params["id"]),
      ),
    )
    .macro(
      loads("linked", async ({ principal, requestContext, params }): Promise<LinkedIdentity> => {
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
          description: "The user signs in with each of them by single sign-on.",
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
          description: "Ends its sessions. The next sign-in with a verified address links again.",
        },
      },
    );
}

interface LinkedIdentity {
  readonly user: User;
  readonly identity: IdentityRow;
}

interface IdentityDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Deletes the link between a user and an identity, and ends the user's access by single sign-on. The next single
 * sign-on with the user's verified email links an identity again, if the SSO connection is active and has the domain of
 * the email. If it does not, the function throws `last_owner` for the last owner who can sign in, because no owner
 * could sign in afterwards.
 *
 * Locks are taken in the same order as in `finishSso`: the users, the SSO connection, then the identity. So a
 * concurrent sign-in with the identity either commits first and is ended here, or waits and then finds that the link is
 * deleted.
 */
async function unlinkIdentity(
  { db, clock }: IdentityDeps,
  { principal: actor, requestContext }: Caller,
  { user, identity }: { readonly user: User; readonly identity: IdentityRow },
): Promise<void> {
  const { id: userId } = user;
  const { id, connectionId, issuer } = identity;
  const now = clock.now();
  await db.transaction(async (tx) => {
    const last = await holdSignIns(tx, actor, user);
    const isActive = await shareConnection(tx, connectionId);
    const linksAnew = isActive && (await canLink(tx, connectionId, user.email));
    if (last !== undefined && !linksAnew) throw new Problem(last);
    if (!(await deleteIdentity(tx, id))) throw new Problem("not_found");
    const revoked = await endSsoAccess(tx, userId, now);
    const details = { user_id: userId, connection_id: connectionId, issuer, revoked };
    await recordAudit(tx, { at: now, action: "SSO_UNLINKED", actor, requestContext, details });
  });
}
