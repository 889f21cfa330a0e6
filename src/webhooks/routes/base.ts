import { Elysia } from "elysia";

import { findCompany } from "../../tenants/actions/companies.ts";
import { partnerAdmin, superAdmin } from "../../auth/guard.ts";
import { opensAllWebhooks, opensSubscription, opensWebhooks } from "../../auth/portal-pages.ts";
import { type Access, type Authenticator, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { loads } from "../../http/request-state.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import type { Principal } from "../../http/principal.ts";
import type { Config } from "../../lib/config.ts";
import type { Lookup } from "../../lib/name-resolver.ts";
import { Problem } from "../../lib/problem.ts";
import { tenantOf, type WebhookDeps } from "../actions/deps.ts";
import { findSubscription } from "../actions/subscriptions.ts";

export interface WebhookRouteDeps extends WebhookDeps {
  readonly checks: Checks;
  readonly config: Pick<Config, "batchHourMs" | "retentionDays" | "egress">;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly streams: EventStreams;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup;
}

export const writing = partnerAdmin("webhooks:write", opensWebhooks);
/** The session of a link to one subscription makes no others. */
export const creating = partnerAdmin("webhooks:write", opensAllWebhooks);

type Params = Readonly<Record<string, string>>;

/**
 * Who reads: a partner its own subscriptions, or an operator those of the partner that the path names (contract 10.3).
 * The routes that read are declared once, for both.
 */
export interface Readers<List extends string, One extends string> {
  /** The path of the list below the base. */
  readonly list: List;
  /** The path of one subscription. */
  readonly one: One;
  /** The parameter of it. */
  readonly id: string;
  readonly tag: string;
  readonly access: Access;
  readonly tenant: (
    deps: WebhookRouteDeps,
    principal: Principal,
    params: Params,
  ) => Promise<number>;
  readonly describe: (detail: Detail) => Detail;
}

interface Detail {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
}

export const THE_PARTNER: Readers<"/partner/webhooks", "/partner/webhooks/:id"> = {
  list: "/partner/webhooks",
  one: "/partner/webhooks/:id",
  id: "id",
  tag: "Webhooks",
  access: partnerAdmin("webhooks:read", opensWebhooks),
  tenant: async (_deps, principal) => tenantOf(principal),
  describe: (detail) => detail,
};

export const OPERATORS: Readers<
  "/admin/partners/:id/webhooks",
  "/admin/partners/:id/webhooks/:subscriptionId"
> = {
  list: "/admin/partners/:id/webhooks",
  one: "/admin/partners/:id/webhooks/:subscriptionId",
  id: "subscriptionId",
  tag: "Administration",
  access: superAdmin(),
  tenant: async (deps, _principal, params) => (await findCompany(deps, "partner", params["id"])).id,
  describe: ({ operationId, summary }) => ({
    operationId: `${operationId}OfPartner`,
    summary: `${summary}, of a partner`,
    description: `As \`${operationId}\`; an operator reads, and changes nothing.`,
  }),
};

/** An instance at the list; `tenant: true` finds whose it is. */
export function listBase<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  { list, tag, tenant }: Readers<L, O>,
) {
  return new Elysia({ prefix: `${BASE_PATH}${list}` as const, tags: [tag] })
    .use(deps.checks)
    .macro(loads("tenant", ({ principal, params }) => tenant(deps, principal, params)));
}

/** An instance at one subscription; `subscription: true` finds it within the tenant. */
export function readingBase<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  readers: Readers<L, O>,
) {
  return new Elysia({ prefix: `${BASE_PATH}${readers.one}` as const, tags: [readers.tag] })
    .use(deps.checks)
    .macro(
      loads("subscription", ({ principal, params }) => readable(deps, readers, principal, params)),
    );
}

/** The subscription that a path names to its readers. */
export async function readable<L extends string, O extends string>(
  deps: WebhookRouteDeps,
  { tenant, id }: Readers<L, O>,
  principal: Principal,
  params: Params,
) {
  return findOpened(deps, principal, await tenant(deps, principal, params), params[id]);
}

/** To the session of a portal link a subscription that it does not open is not there. */
async function findOpened(
  deps: WebhookRouteDeps,
  { pages }: Principal,
  partnerId: number,
  id = "",
): ReturnType<typeof findSubscription> {
  if (!opensSubscription(pages, id)) throw new Problem("not_found");
  return findSubscription(deps, partnerId, id);
}

/** An instance at `/partner/webhooks`; `subscription: true` finds what `:id` names within the caller's tenant. */
export function webhookRoutesBase(deps: WebhookRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/webhooks`, tags: ["Webhooks"] })
    .use(deps.checks)
    .macro(
      loads("subscription", ({ principal, params }) =>
        findOpened(deps, principal, tenantOf(principal), params["id"]),
      ),
    );
}
