import { Elysia } from "elysia";

import type { Db } from "../db/client.ts";
import { adminRoutes } from "./admin/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import type { CountSignIn } from "./auth/actions/attempt-sign-in.ts";
import { createAuthenticator } from "./auth/authenticator.ts";
import type { KeyRing } from "./auth/key-ring.ts";
import { authRoutes } from "./auth/routes.ts";
import { SIGN_OUT_PATHS } from "./auth/routes/sign-in.ts";
import { dashboardSite } from "./dashboard/site.ts";
import { docPages } from "./docs/pages.ts";
import { checks } from "./http/checks.ts";
import { edge } from "./http/edge.ts";
import { EventStreams } from "./http/event-stream.ts";
import { servedFiles } from "./http/files.ts";
import { health } from "./http/health.ts";
import { refuseOtherMethods } from "./http/method-not-allowed.ts";
import { requestMetrics, type CountRequest } from "./http/metrics.ts";
import { apiDescription } from "./http/openapi/description.ts";
import type { RateLimiter } from "./http/rate-limit.ts";
import { trustAnswers } from "./http/trusted-answers.ts";
import type { Clock } from "./lib/clock.ts";
import type { Config } from "./lib/config.ts";
import { errorFields, type Log } from "./lib/log.ts";
import type { Passwords } from "./lib/password.ts";
import type { SecretBox } from "./lib/secret-box.ts";
import { oauthRoutes } from "./oauth/routes.ts";
import { wellKnown } from "./oauth/well-known.ts";
import { OAUTH_ERRORS } from "./oauth/routes/answers.ts";
import type { Waker } from "./outbox/schedule.ts";
import { providerRoutes } from "./providers/routes.ts";
import { reviewRoutes } from "./reviews/routes.ts";
import { IdentityProviders } from "./sso/identity-providers.ts";
import { EXCHANGE_PATH, ssoRoutes } from "./sso/routes.ts";
import { webhookRoutes } from "./webhooks/routes.ts";

/** All that the API is made of. Each domain takes the part of it that it needs. */
export interface AppDeps {
  readonly config: Config;
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly keys: KeyRing;
  readonly passwords: Passwords;
  /** Store → a call that rejects while the store is away. */
  readonly stores: Readonly<Record<string, () => Promise<unknown>>>;
  /** Absent with `RATE_LIMITS=off`. */
  readonly limiter?: RateLimiter | undefined;
  /** Absent where nobody counts. */
  readonly countRequest?: CountRequest;
  readonly countSignIn?: CountSignIn;
  /** Aborts when the process begins to stop: open streams end then. */
  readonly stopping?: AbortSignal;
}

/** A store that takes longer is not ready; whoever asks has a deadline too. */
const PING_TIMEOUT_MS = 2_000;

/** GET of these has an effect, so that HEAD is none of their methods (decisions.md 2). */
const GET_HAS_EFFECT = new Set([...SIGN_OUT_PATHS, EXCHANGE_PATH]);

export function createApp(deps: AppDeps) {
  const { clock, config, countRequest = () => {}, limiter, log } = deps;
  const { serverRoot, trustedProxies } = config;
  const app = new Elysia({ normalize: false })
    .use(edge({ clock, log, limiter, trustedProxies, looks: OAUTH_ERRORS }))
    .use(requestMetrics(clock, countRequest))
    .use(apiRoutes(deps))
    .use(wellKnown(deps.keys, serverRoot))
    .use(health(() => readiness(deps)))
    .use(servedFiles(docPages()))
    .use(dashboardSite());
  app.use(apiDescription(app, serverRoot));
  trustAnswers(app);
  refuseOtherMethods(app, GET_HAS_EFFECT);
  return app;
}

/** Everything that takes a request of a user, a client or a review site. */
export function apiRoutes(app: AppDeps) {
  const authenticator = createAuthenticator(app);
  const deps = {
    ...app,
    authenticator,
    checks: checks(authenticator),
    streams: new EventStreams(app),
    providers: new IdentityProviders(app),
  };
  return new Elysia({ name: "api" })
    .use(authRoutes(deps))
    .use(oauthRoutes(deps))
    .use(ssoRoutes(deps))
    .use(auditRoutes(deps))
    .use(adminRoutes(deps))
    .use(webhookRoutes(deps))
    .use(providerRoutes(deps))
    .use(reviewRoutes(deps));
}

/** The API as its typed client sees it. */
export type Api = ReturnType<typeof apiRoutes>;

async function readiness(deps: AppDeps) {
  const states = await Promise.all(
    Object.entries(deps.stores).map(async ([name, ping]) => ({
      name,
      state: await stateOf(deps, name, ping),
    })),
  );
  const ready = states.every(({ state }) => state === "ok");
  return { ready, checks: Object.fromEntries(states.map(({ name, state }) => [name, state])) };
}

async function stateOf(
  { clock, log }: AppDeps,
  store: string,
  ping: () => Promise<unknown>,
): Promise<"ok" | "failed"> {
  const answered = ping().then(
    () => true,
    (error: unknown) => {
      log.warn("store.unreachable", { store, ...errorFields(error) });
      return false;
    },
  );
  const late = clock.sleep(PING_TIMEOUT_MS).then(() => false);
  return (await Promise.race([answered, late])) ? "ok" : "failed";
}
