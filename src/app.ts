import { type AnyElysia, Elysia } from "elysia";

import { isOutcomeUnknown, isStoreFailure } from "../db/errors.ts";
import { apiRoutes, type ApiDeps } from "./api/routes.ts";
import { SIGN_OUT_PATHS } from "./auth/routes.ts";
import { dashboardSite } from "./dashboard/site.ts";
import { docPages } from "./docs/pages.ts";
import { accessLog, cors, edge, refuseOtherMethods, trustAnswers } from "./http/edge.ts";
import { servedFiles } from "./http/files.ts";
import { answerCounter, type Answered, type CountRequest, health } from "./http/metrics.ts";
import { apiDescription, apiDocument } from "./http/openapi/description.ts";
import type { RateLimiter } from "./http/rate-limit.ts";
import { addMs, type Clock, isoInstant } from "./lib/clock.ts";
import type { Config } from "./lib/config.ts";
import { type Checks, readinessOf } from "./lib/readiness.ts";
import { OAUTH_ERRORS } from "./oauth/oauth-error.ts";
import { wellKnown } from "./oauth/well-known.ts";
import { framedBy } from "./portal/actions.ts";
import { SSO_LEGS } from "./sso/routes.ts";
import { AUTHORIZE_RETURN } from "./sso/urls.ts";
import { describeEvents } from "./webhooks/event-description.ts";

export interface AppDeps extends ApiDeps {
  /** The checks behind the readiness probe `/readyz`. */
  readonly checks: Checks;
  /**
   * Returns the time in ms by which this machine's clock is ahead of PostgreSQL's; absent if the clocks are not
   * compared.
   */
  readonly clockSkewMs?: () => number;
  /** Returns whether the process has received the signal to stop; absent in tests. */
  readonly isDraining?: () => boolean;
  /** The rate limiter; absent with `RATE_LIMITS=off`. */
  readonly limiter?: RateLimiter | undefined;
  /** Counts requests; absent if metrics are off. */
  readonly countRequest?: CountRequest;
}

/** Paths where a GET request changes data, so they do not support HEAD (contract 2.6). */
const GET_HAS_EFFECT = new Set([...SIGN_OUT_PATHS, ...SSO_LEGS, AUTHORIZE_RETURN]);

/** Paths that apps in a browser may call from any origin (contract 2.11). */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/oauth/token",
  "/oauth/revoke",
  "/.well-known/jwks.json",
  "/.well-known/oauth-authorization-server",
]);

/** Builds the whole API process as one Elysia instance: the edge, the API, documents and pages. */
export function createApp(deps: AppDeps): AnyElysia {
  const { clock, config, countRequest = () => {}, limiter, log, traces } = deps;
  const { serverRoot, trustedProxies } = config;
  const count = answerCounter(clock, countRequest);
  const logAccess = config.accessLog ? accessLog(clock, log) : () => {};
  const answered: Answered = (one, status) => {
    count(one, status);
    logAccess(one, status);
    traces?.answered(one.request, one.route, status);
  };
  const { isDraining = () => false } = deps;
  // `standardHostname` is off: with this option Elysia skips the first characters of the URL when it looks for the
  // path, which fails for a short `Host`, such as that of a container.
  const app: AnyElysia = new Elysia({ normalize: false, handler: { standardHostname: false } });
  const describe = apiDocument(app, {
    serverRoot,
    getHasEffect: GET_HAS_EFFECT,
    describeWebhooks: describeEvents,
  });
  app
    .onRequest(({ set }) => {
      // While the process drains, each response closes its connection. So clients that keep connections, such as
      // proxies, open the next one to another process.
      if (isDraining()) set.headers["connection"] = "close";
    })
    .use(
      edge({
        clock,
        log,
        limiter,
        serverRoot,
        trustedProxies,
        answered,
        looks: OAUTH_ERRORS,
        failures: { isStoreFailure, isOutcomeUnknown },
        getHasEffect: GET_HAS_EFFECT,
      }),
    )
    .use(cors({ open: OPEN_PATHS, origins: config.corsOrigins }))
    .use<AnyElysia>(apiRoutes(deps))
    .use(wellKnown(deps.keys, serverRoot))
    .use(securityTxt({ clock, config }))
    .use(health(() => readinessOf(deps)))
    .use(servedFiles(docPages(serverRoot, describe)))
    .use(dashboardSite({ framedBy: (key) => framedBy(deps, key) }));
  if (traces !== undefined) app.onRequest(({ request }) => traces.begin(request));
  app.use(apiDescription(describe));
  trustAnswers(app);
  refuseOtherMethods(app, GET_HAS_EFFECT);
  return app;
}

/** Time in ms after which a copy of `security.txt` expires. RFC 9116 recommends less than a year. */
const LIFE_MS = 180 * 86_400_000;

interface SecurityTxtDeps {
  readonly clock: Clock;
  readonly config: Pick<Config, "securityContacts" | "serverRoot">;
}

/**
 * Serves `/.well-known/security.txt` (RFC 9116), which says where to report a vulnerability. Responds with 404 if no
 * contact is configured.
 */
function securityTxt({ clock, config: { securityContacts, serverRoot } }: SecurityTxtDeps) {
  const app = new Elysia();
  if (securityContacts === undefined) return app;
  const path = "/.well-known/security.txt";
  return app.get(
    path,
    () => {
      const fields = [
        ...securityContacts.map((one) => `Contact: ${one}`),
        `Expires: ${isoInstant(addMs(clock.now(), LIFE_MS))}`,
        `Canonical: ${serverRoot}${path}`,
      ];
      const headers = { "Content-Type": "text/plain; charset=utf-8" };
      return new Response(`${fields.join("\n")}\n`, { headers });
    },
    { detail: { hide: true } },
  );
}
