import { Elysia } from "elysia";

import { partnerAdmin } from "../../auth/guard.ts";
import type { Authenticator } from "../../http/access.ts";
import { BASE_PATH } from "../../http/base-path.ts";
import type { Checks } from "../../http/checks.ts";
import { finds } from "../../http/finds.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import type { Config } from "../../lib/config.ts";
import type { Lookup } from "../../lib/egress.ts";
import type { WebhookDeps } from "../actions/deps.ts";
import { findSubscription } from "../actions/subscriptions.ts";

export interface WebhookRouteDeps extends WebhookDeps {
  readonly checks: Checks;
  readonly config: Pick<Config, "batchHourMs" | "retentionDays" | "egress">;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly streams: EventStreams;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup;
}

export const reading = partnerAdmin("webhooks:read");
export const writing = partnerAdmin("webhooks:write");

/** An instance at `/partner/webhooks`; `subscription: true` finds what `:id` names within the caller's tenant. */
export function webhookRoutesBase(deps: WebhookRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/webhooks`, tags: ["Webhooks"] })
    .use(deps.checks)
    .macro(
      finds("subscription", ({ principal, params }) =>
        findSubscription(deps, principal, params["id"] ?? ""),
      ),
    );
}
