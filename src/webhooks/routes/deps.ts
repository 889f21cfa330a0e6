import { partnerAdmin } from "../../auth/guard.ts";
import type { Principal } from "../../auth/model.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import type { Edge } from "../../http/serve.ts";
import type { Config } from "../../lib/config.ts";
import type { Lookup } from "../../lib/egress.ts";
import type { WebhookDeps } from "../actions/deps.ts";
import { findSubscription } from "../actions/subscriptions.ts";
import type { Subscription } from "../model.ts";

export interface RouteDeps extends WebhookDeps, Pick<Edge, "authenticate"> {
  readonly config: Pick<Config, "batchHourMs" | "retentionDays" | "egress">;
  readonly streams: EventStreams;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup;
}

export const BASE = "/partner/webhooks";
export const reading = partnerAdmin("webhooks:read");
export const writing = partnerAdmin("webhooks:write");

interface Asked {
  readonly principal: Principal;
  readonly params: Readonly<Record<string, string>>;
}

/** The subscription that `:id` names, within the caller's tenant. */
export const findWith =
  (deps: Pick<RouteDeps, "db">) =>
  ({ principal, params }: Asked): Promise<Subscription> =>
    findSubscription(deps, principal, params["id"] ?? "");
