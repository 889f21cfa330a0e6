import { join } from "../http/join.ts";
import type { Db } from "../../db/client.ts";
import type { CountSignIn } from "../auth/sign-in/log-in.ts";
import type { KeyRing } from "../auth/keys/key-ring.ts";
import { FailureAudit } from "../audit/failures.ts";
import { adminRoutes } from "../tenants/routes.ts";
import { alertRoutes } from "../webhooks/routes/alerts.ts";
import { createKeyedRequests } from "../auth/keyed-requests.ts";
import { createAuthenticator } from "../auth/access/authenticate.ts";
import { createCodeMac } from "../auth/passwords/codes.ts";
import { authRoutes } from "../auth/routes.ts";
import { checks } from "../http/checks.ts";
import { intakeRoutes } from "../intake/routes.ts";
import { EventStreams } from "../http/event-stream.ts";
import { oauthRoutes } from "../oauth/routes.ts";
import { partnerRoutes } from "../tenants/routes/team.ts";
import { portalRoutes } from "../portal/routes.ts";
import { reviewRoutes } from "../reviews/routes.ts";
import { IdentityProviders } from "../sso/identity-providers.ts";
import { serviceRoutes } from "../services/routes.ts";
import { ssoRoutes } from "../sso/routes.ts";
import { webhookRoutes } from "../webhooks/routes.ts";
import type { Clock } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { Log } from "../lib/log.ts";
import type { TxtLookup } from "../lib/name-resolver.ts";
import type { Passwords } from "../lib/password.ts";
import type { SecretBox } from "../lib/secrets.ts";
import type { WriterPool } from "../outbox/writer-pool.ts";
import type { RequestTraces } from "../outbox/request-traces.ts";
import type { Waker } from "../outbox/schedule.ts";

/** The dependencies of the API. Each domain declares the part that it needs. */
export interface ApiDeps {
  readonly config: Config;
  readonly db: Db;
  readonly writerPool: WriterPool;
  readonly clock: Clock;
  readonly log: Log;
  readonly box: SecretBox;
  readonly schedule: Waker;
  readonly keys: KeyRing;
  readonly passwords: Passwords;
  /** The look-up of TXT records; that of the system if absent. */
  readonly lookupTxt?: TxtLookup;
  /** Counts sign-ins; absent if metrics are off. */
  readonly countSignIn?: CountSignIn;
  /** Audits refused requests. The process writes its last counts when it stops. If absent, the API creates its own. */
  readonly failures?: FailureAudit;
  /** Tracing of requests; absent if tracing is off. */
  readonly traces?: RequestTraces | undefined;
  /** Signal that aborts when the process begins to stop, which ends open streams. */
  readonly stopping?: AbortSignal;
}

/** Defines all API routes that users, OAuth clients and review sites call. */
export function apiRoutes(api: ApiDeps) {
  const { failures = new FailureAudit(api) } = api;
  const authenticator = createAuthenticator({ ...api, failures });
  const deps = {
    ...api,
    codes: createCodeMac(api.config),
    authenticator,
    checks: checks(authenticator, createKeyedRequests(api)),
    failures,
    streams: new EventStreams(api),
    providers: new IdentityProviders(api),
  };
  return join(
    authRoutes(deps),
    oauthRoutes(deps),
    ssoRoutes(deps),
    adminRoutes(deps),
    partnerRoutes(deps),
    webhookRoutes(deps),
    alertRoutes(deps),
    portalRoutes(deps),
    intakeRoutes(deps),
    reviewRoutes(deps),
    serviceRoutes(deps),
  );
}

/** The type of the API, from which the typed client is derived. */
export type Api = ReturnType<typeof apiRoutes>;
