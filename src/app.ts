import { type AnyElysia, Elysia } from "elysia";

import { isOutcomeUnknown, isStoreFailure } from "../db/errors.ts";
import { apiRoutes, type ApiDeps } from "./api/routes.ts";
import { SIGN_OUT_PATHS } from "./auth/routes.ts";
import { dashboardSite } from "./dashboard/site.ts";
import { docPages } from "./docs/pages.ts";
import { accessLog, cors, edge, refuseOtherMethods, trustAnswers } from "./http/edge.ts";
import { servedFiles } from "./http/files.ts";
import { securityTxt } from "./http/security-txt.ts";
import { answerCounter, type Answered, type CountRequest, health } from "./http/metrics.ts";
import { apiDescription, apiDocument } from "./http/openapi/description.ts";
import type { RateLimiter } from "./http/rate-limit.ts";
import { type Checks, readinessOf } from "./lib/readiness.ts";
import { wellKnown } from "./oauth/well-known.ts";
import { OAUTH_ERRORS } from "./oauth/oauth-error.ts";
import { framedBy } from "./portal/actions.ts";
import { AUTHORIZE_RETURN } from "./sso/places.ts";
import { SSO_LEGS } from "./sso/routes.ts";
import { describeEvents } from "./webhooks/event-description.ts";

export interface AppDeps extends ApiDeps {
  /** The checks behind the readiness probe `/readyz`. */
  readonly checks: Checks;
  /**
   * Returns by how many ms this machine's clock is ahead of PostgreSQL's clock; absent if the clocks are not
   * compared.
   */
  readonly clockSkewMs?: () => number;
  /** Returns whether the process has begun to stop; absent in tests. */
  readonly isDraining?: () => boolean;
  /** The rate limiter; absent with `RATE_LIMITS=off`. */
  readonly limiter?: RateLimiter | undefined;
  /** Counts requests; absent if metrics are off. */
  readonly countRequest?: CountRequest;
}

/** Paths at which a GET has an effect, so they do not support HEAD (contract 2.6). */
const GET_HAS_EFFECT = new Set([...SIGN_OUT_PATHS, ...SSO_LEGS, AUTHORIZE_RETURN]);

/** Paths that apps in a browser may call from any origin (contract 2.11). */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/oauth/token",
  "/oauth/revoke",
  "/.well-known/jwks.json",
  "/.well-known/oauth-authorization-server",
]);

/** Builds the whole API process as one Elysia instance: checks for every request, the API, documents and pages. */
export function createApp(deps: AppDeps): AnyElysia {
  const { clock, config, countRequest = () => {}, limiter, log, traces } = deps;
  const { serverRoot, trustedProxies } = config;
  const count = answerCounter(clock, countRequest);
  const tell = config.accessLog ? accessLog(clock, log) : () => {};
  const answered: Answered = (...answer) => {
    count(...answer);
    tell(...answer);
    traces?.answered(...answer);
  };
  const { isDraining = () => false } = deps;
  // `standardHostname` is off, because this option of Elysia skips the first characters of the URL when it looks for
  // the path, which fails for a short `Host`, such as that of a container.
  const app: AnyElysia = new Elysia({ normalize: false, handler: { standardHostname: false } });
  const describe = apiDocument(app, {
    serverRoot,
    getHasEffect: GET_HAS_EFFECT,
    describeWebhooks: describeEvents,
  });
  app
    .onRequest(({ set }) => {
      // While the process drains, each response closes its connection. Clients with kept connections, such as
      // proxies, then open the next one to another process.
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
