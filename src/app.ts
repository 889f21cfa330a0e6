import type { Db } from "../db/client.ts";
import { adminRoutes } from "./admin/routes.ts";
import { auditRoutes } from "./audit/routes.ts";
import type { CountSignIn } from "./auth/actions/attempt-sign-in.ts";
import { createEdge } from "./auth/edge.ts";
import type { KeyRing } from "./auth/key-ring.ts";
import { authRoutes } from "./auth/routes.ts";
import { dashboardSite } from "./dashboard/site.ts";
import { docPages } from "./docs/pages.ts";
import { EventStreams } from "./http/event-stream.ts";
import { BASE_PATH, mount } from "./http/base-path.ts";
import { openApiDocument } from "./http/openapi.ts";
import type { Observe } from "./http/metrics.ts";
import type { RateLimiter } from "./http/rate-limit.ts";
import type { Route } from "./http/route.ts";
import type { Clock } from "./lib/clock.ts";
import type { Config } from "./lib/config.ts";
import { errorFields, type Log } from "./lib/log.ts";
import type { Passwords } from "./lib/password.ts";
import type { SecretBox } from "./lib/secret-box.ts";
import { authorizationServerMetadata } from "./oauth/metadata.ts";
import { oauthClientRoutes, oauthRootRoutes } from "./oauth/routes.ts";
import type { Waker } from "./outbox/schedule.ts";
import { providerRoutes } from "./providers/routes.ts";
import { reviewRoutes } from "./reviews/routes.ts";
import { IdentityProviders } from "./sso/identity-providers.ts";
import { ssoRoutes } from "./sso/routes.ts";
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
  readonly observe?: Observe;
  readonly countSignIn?: CountSignIn;
  /** Aborts when the process begins to stop: open streams end then. */
  readonly stopping?: AbortSignal;
}

/** A store that takes longer is not ready; whoever asks has a deadline too. */
const PING_TIMEOUT_MS = 2_000;

export function createApp(deps: AppDeps) {
  const edge = { ...createEdge(deps), limiter: deps.limiter, observe: deps.observe };
  const streams = new EventStreams(deps);
  const { serverRoot } = deps.config;
  const providers = new IdentityProviders(deps);
  const routes: Route[] = [
    ...authRoutes(deps),
    ...oauthClientRoutes(deps),
    ...ssoRoutes({ ...deps, providers }),
    ...auditRoutes(deps),
    ...adminRoutes({ ...deps, streams, authenticate: (call) => edge.authenticate(call) }),
    ...webhookRoutes({ ...deps, streams, authenticate: (call) => edge.authenticate(call) }),
    // decisions.md 1, rate limits: a review site may report as fast as it can.
    ...providerRoutes(deps).map((one) => ({ ...one, unlimited: true })),
    ...reviewRoutes(deps),
  ];
  const roots = oauthRootRoutes({ ...deps, providers });
  return mount(edge, {
    routes,
    documents: {
      "/.well-known/jwks.json": () => deps.keys.jwks(),
      "/.well-known/oauth-authorization-server": () => authorizationServerMetadata(serverRoot),
      "/openapi.json": once(() => openApiDocument({ ...API, serverRoot, routes, roots })),
    },
    pages: docPages(),
    sites: [dashboardSite()],
    rootRoutes: roots,
    readiness: () => readiness(deps),
    trustedProxies: deps.config.trustedProxies,
  });
}

const API = {
  basePath: BASE_PATH,
  documents: {
    "/healthz": "Tell that the process is alive",
    "/readyz": "Tell whether the stores answer",
    "/openapi.json": "Get this document",
    "/.well-known/jwks.json": "Get the keys that tokens are signed with",
    "/.well-known/oauth-authorization-server": "Get what OAuth clients configure themselves with",
  },
};

/** Made at the first look: every start would pay for a page that few of them show. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

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
