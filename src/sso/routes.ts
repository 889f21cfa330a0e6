import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { recordCompanyRead } from "../auth/actions/tenant-reads.ts";
import { inPerson, superAdmin, withStepUp } from "../auth/guard.ts";
import { loginAnswer } from "../auth/model.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { loads } from "../http/request-state.ts";
import { listOf, listSchema, pageOf } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import { errorResponse } from "../http/errors.ts";
import type { RuleInput } from "../http/rules.ts";
import type { Config } from "../lib/config.ts";
import { beginSso, redirectErrors } from "./actions/begin-sso.ts";
import * as actions from "./actions/connections.ts";
import type { SsoDeps } from "./actions/deps.ts";
import { exchangeCode } from "./actions/exchange-code.ts";
import { finishSso } from "./actions/finish-sso.ts";
import { browserCookie } from "./browser.ts";
import { identityRoutes } from "./identity-routes.ts";
import {
  callbackQuery,
  type Connection,
  connectionObject,
  connectionsQuery,
  type ConnectionUpdate,
  connectionUpdateBody,
  exchangeQuery,
  newConnectionBody,
  proofBody,
  redirectQuery,
  showConnection,
} from "./model.ts";
import { callbackUri } from "./places.ts";

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
          "Needs `email` or `connection`. The sign-in ends at `return_to`, the dashboard by default, with a one-time `code`; every failure ends at the dashboard with `error=sso_failed`.",
      },
    },
  );
}

/**
 * Defines the later steps of a single sign-on: the callback from the provider, and the exchange of the one-time code
 * for a token.
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
          summary: "Take the answer of an identity provider",
          description: "Works once, in the browser in which the sign-in began.",
        },
      },
    )
    .get(EXCHANGE, ({ query, requestContext }) => exchangeCode(deps, query, requestContext), {
      public: true,
      signIn: true,
      query: exchangeQuery,
      response: { 200: loginAnswer, 400: errorResponse("invalid_code") },
      detail: {
        operationId: "exchangeSsoCode",
        summary: "Exchange the one-time code of a single sign-on for a token",
        description:
          "The code works once within 60 seconds, with the `code_verifier` if the sign-in had a challenge.",
      },
    });
}

/**
 * Returns the headers of a redirect. Its URL may contain a code or a state, which must not leak to the next page in
 * the Referer header.
 */
function redirectHeaders(location: string) {
  return { location, "referrer-policy": "no-referrer" };
}

interface ConnectionRouteDeps extends actions.ConnectionDeps {
  readonly checks: Checks;
  readonly config: actions.ConnectionDeps["config"] & Pick<Config, "serverRoot">;
}

const reading = superAdmin();
/**
 * Access rule for changes of an SSO connection. A connection decides as which user a person is signed in, so a change
 * needs the user in person (contract 3.9).
 */
const changing = withStepUp(inPerson(reading));

/** Defines the routes that manage SSO connections (contract 4.13 and 10.2). */
function connectionRoutes(deps: ConnectionRouteDeps) {
  return join(collectionRoutes(deps), singleRoutes(deps));
}

function collectionRoutes(deps: ConnectionRouteDeps) {
  const show = showWith(deps);
  return instance(deps)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const rows = await actions.listConnections(deps, query.company_id, page);
        const companyId = query.company_id ?? null;
        await recordRead(deps, { principal, requestContext }, companyId);
        return listOf(rows, page, { key: (one) => one.id, show });
      },
      {
        access: reading,
        query: connectionsQuery,
        response: { 200: listSchema(connectionObject) },
        detail: {
          operationId: "listSsoConnections",
          summary: "List single sign-on connections, newest first",
          description: "`company_id` restricts the list to one company.",
        },
      },
    )
    .post(
      "",
      async ({ principal, requestContext, body, status }) =>
        status(
          201,
          show(await actions.createConnection(deps, { principal, requestContext }, body)),
        ),
      {
        access: changing,
        body: newConnectionBody,
        rules: ({ body }: RuleInput<typeof newConnectionBody>) =>
          actions.connectionErrors(deps, body),
        response: { 201: connectionObject },
        detail: {
          operationId: "createSsoConnection",
          summary: "Connect a company with an identity provider",
          description: "The client secret is stored encrypted and never returned.",
        },
      },
    );
}

/** Creates an Elysia instance whose macro `connection: true` loads the SSO connection of `:id`. */
function instance(deps: ConnectionRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/sso-connections`, tags: ["Administration"] })
    .use(deps.checks)
    .macro(loads("connection", ({ params }) => actions.findConnection(deps, params["id"] ?? "")));
}

/** Records that an operator reads connections (contract 10.3). */
const recordRead = (deps: ConnectionRouteDeps, caller: Caller, companyId: number | null) =>
  recordCompanyRead(deps, caller, { companyId, kind: "sso-connections" });

function showWith({ config }: ConnectionRouteDeps) {
  return (row: Connection) => showConnection(row, callbackUri(config, row.id));
}

function singleRoutes(deps: ConnectionRouteDeps) {
  const show = showWith(deps);
  const update = async (caller: Caller, { id }: Connection, body: ConnectionUpdate) =>
    show(await actions.updateConnection(deps, caller, { id, body }));
  const updating = {
    access: changing,
    connection: true,
    body: connectionUpdateBody,
    rules: ({ body, connection }: RuleInput<typeof connectionUpdateBody> & Found) =>
      actions.connectionErrors(deps, body, connection),
    response: { 200: connectionObject },
    detail: {
      operationId: "updateSsoConnection",
      summary: "Update a single sign-on connection",
      description: "Send only the fields to change.",
    },
  } as const;
  return instance(deps)
    .get(
      "/:id",
      async ({ principal, requestContext, connection }) => {
        await recordRead(deps, { principal, requestContext }, connection.companyId);
        return show(connection);
      },
      {
        access: reading,
        connection: true,
        response: { 200: connectionObject },
        detail: {
          operationId: "getSsoConnection",
          summary: "Show a single sign-on connection",
          description: "Its secret is never shown.",
        },
      },
    )
    .post(
      "/:id",
      ({ principal, requestContext, connection, body }) =>
        update({ principal, requestContext }, connection, body),
      updating,
    )
    .patch(
      "/:id",
      ({ principal, requestContext, connection, body }) =>
        update({ principal, requestContext }, connection, body),
      updating,
    )
    .post(
      "/:id/prove-domain",
      async ({ principal, requestContext, connection, body }) =>
        show(
          await actions.proveDomain(deps, { principal, requestContext }, connection, body.domain),
        ),
      {
        access: changing,
        connection: true,
        body: proofBody,
        rules: ({ body, connection }: RuleInput<typeof proofBody> & Found) =>
          actions.proofErrors(connection, body.domain),
        response: { 200: connectionObject },
        detail: {
          operationId: "proveSsoDomain",
          summary: "Prove by DNS that a company owns an email domain",
          description: "Looks for the TXT record of `domain_proofs`, and keeps the proof.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, connection, status }) => {
        await actions.deleteConnection(deps, { principal, requestContext }, connection.id);
        return status(204, undefined);
      },
      {
        access: changing,
        connection: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteSsoConnection",
          summary: "Delete a single sign-on connection",
          description: "Also deletes its links between users and the provider; sessions stay.",
        },
      },
    );
}

interface Found {
  readonly connection: Connection;
}
