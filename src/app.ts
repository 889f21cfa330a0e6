import { Elysia } from "elysia";

import { isStoreFailure } from "../db/errors.ts";
import { apiRoutes, type ApiDeps } from "./api/routes.ts";
import { SIGN_OUT_PATHS } from "./auth/routes.ts";
import { dashboardSite } from "./dashboard/site.ts";
import { docPages } from "./docs/pages.ts";
import { accessLog, cors, edge, refuseOtherMethods, trustAnswers } from "./http/edge.ts";
import { servedFiles } from "./http/files.ts";
import { answerCounter, type Answered, type CountRequest, health } from "./http/metrics.ts";
import { apiDescription } from "./http/openapi/description.ts";
import type { RateLimiter } from "./http/rate-limit.ts";
import { type Checks, readinessOf } from "./lib/readiness.ts";
import { wellKnown } from "./oauth/well-known.ts";
import { OAUTH_ERRORS } from "./oauth/oauth-error.ts";
import { framedBy } from "./webhooks/actions/portal.ts";
import { AUTHORIZE_RETURN } from "./sso/places.ts";
import { SSO_LEGS } from "./sso/routes.ts";
import { describeEvents } from "./webhooks/event-description.ts";

export interface AppDeps extends ApiDeps {
  /** What `/readyz` looks at. */
  readonly checks: Checks;
  /** What this machine's clock is ahead of Postgres'; absent where nobody compares them. */
  readonly clockSkewMs?: () => number;
  /** Whether the process was told to stop; absent where nobody tells it. */
  readonly isDraining?: () => boolean;
  /** Absent with `RATE_LIMITS=off`. */
  readonly limiter?: RateLimiter | undefined;
  /** Absent where nobody counts. */
  readonly countRequest?: CountRequest;
}

/** GET of these has an effect, so that HEAD is none of their methods (contract 2.6). */
const GET_HAS_EFFECT = new Set([...SIGN_OUT_PATHS, ...SSO_LEGS, AUTHORIZE_RETURN]);

/** What an app in a browser needs, wherever it comes from (contract 2.11). */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/oauth/token",
  "/oauth/revoke",
  "/.well-known/jwks.json",
  "/.well-known/oauth-authorization-server",
]);

/** The whole process as one Elysia instance: what every request meets, the API, documents and pages. */
export function createApp(deps: AppDeps) {
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
  // Without `standardHostname` the path is found behind a `Host` of three characters, too, such as that of a container.
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } })
    .onRequest(({ set }) => {
      // Whoever keeps connections, as proxies do, makes the next one to another process.
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
        isStoreFailure,
      }),
    )
    .use(cors({ open: OPEN_PATHS, origins: config.corsOrigins }))
    .use(apiRoutes(deps))
    .use(wellKnown(deps.keys, serverRoot))
    .use(health(() => readinessOf(deps)))
    .use(servedFiles(docPages(serverRoot)))
    .use(dashboardSite({ framedBy: (key) => framedBy(deps, key) }));
  if (traces !== undefined) app.onRequest(({ request }) => traces.begin(request));
  app.use(apiDescription(app, serverRoot, describeEvents));
  trustAnswers(app);
  refuseOtherMethods(app, GET_HAS_EFFECT);
  return app;
}
