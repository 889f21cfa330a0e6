import { Elysia } from "elysia";

import { recordTenantRead } from "../../auth/access/tenant-reads.ts";
import {
  hiddenFromOperators,
  partnerAdmin,
  superAdmin,
  withStepUp,
} from "../../auth/access/guard.ts";
import {
  opensAllWebhooks,
  opensSubscription,
  opensWebhooks,
} from "../../auth/access/portal-pages.ts";
import { type Access, type Authenticator, BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { findRow, isUlid } from "../../http/ids.ts";
import { loads } from "../../http/request-state.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import { type Caller, type Principal, tenantOf } from "../../http/principal.ts";
import type { Config } from "../../lib/config.ts";
import type { Lookup } from "../../lib/name-resolver.ts";
import { Problem } from "../../lib/problem.ts";
import { type WebhookDeps } from "../actions/deps.ts";
import type { Subscription } from "../model.ts";
import * as queries from "../queries/subscriptions.ts";

export interface WebhookRouteDeps extends WebhookDeps {
  readonly checks: Checks;
  readonly config: WebhookDeps["config"] & Pick<Config, "egress" | "serverRoot" | "sessionLimits">;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly streams: EventStreams;
  /** The DNS look-up of webhook hosts; the resolver of the system if absent. */
  readonly lookup?: Lookup;
}

export const writing = partnerAdmin("webhooks:write", opensWebhooks);
/** Access rule for the routes whose response contains the signing secret of an existing subscription. */
export const revealing = withStepUp(hiddenFromOperators(writing));
/**
 * Access rule for creating a subscription. It demands a step-up and refuses operators, because the response contains
 * the secret. The session of a portal link to one subscription may not create others.
 */
export const creating = withStepUp(
  hiddenFromOperators(partnerAdmin("webhooks:write", opensAllWebhooks)),
);

type PathParams = Readonly<Record<string, string>>;

/**
 * The audience of routes that read: partners, for their own subscriptions, or operators, for those of the partner in
 * the path (contract 10.3). The routes are declared once and mounted for both.
 */
export interface Audience<List extends string, One extends string> {
  /** Path of the list of subscriptions, below the base path of the API. */
  readonly list: List;
  /** Path of one subscription, below the base path of the API. */
  readonly one: One;
  /** Name of the path parameter with the id of the subscription. */
  readonly id: string;
  readonly tag: string;
  readonly access: Access;
  readonly tenant: (deps: WebhookRouteDeps, caller: Caller, params: PathParams) => Promise<number>;
  readonly describe: (detail: RouteDetail) => RouteDetail;
}

interface RouteDetail {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
}

export const PARTNERS: Audience<"/partner/webhooks", "/partner/webhooks/:id"> = {
  list: "/partner/webhooks",
  one: "/partner/webhooks/:id",
  id: "id",
  tag: "Webhooks",
  access: partnerAdmin("webhooks:read", opensWebhooks),
  tenant: async (_deps, { principal }) => tenantOf(principal),
  describe: (detail) => detail,
};

export const OPERATORS: Audience<
  "/admin/partners/:id/webhooks",
  "/admin/partners/:id/webhooks/:subscriptionId"
> = {
  list: "/admin/partners/:id/webhooks",
  one: "/admin/partners/:id/webhooks/:subscriptionId",
  id: "subscriptionId",
  tag: "Administration",
  access: superAdmin(),
  tenant: async (deps, caller, params) => {
    const partnerId = await findRow(params["id"], (id) => queries.findPartner(deps.db, id));
    await recordTenantRead(deps, caller, { partnerId, kind: "webhooks" });
    return partnerId;
  },
  describe: ({ operationId, summary }) => ({
    operationId: `${operationId}OfPartner`,
    summary: `${summary}, of a partner`,
    description: `Same as \`${operationId}\`, for operators.`,
  }),
};

/**
 * Makes an Elysia instance at the path of the list. The macro `tenant: true` finds the partner that the list belongs
 * to.
 */
export function listBase<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  { list, tag, tenant }: Audience<L, O>,
) {
  return new Elysia({ prefix: `${BASE_PATH}${list}` as const, tags: [tag] })
    .use(deps.checks)
    .macro(loads("tenant", ({ params, ...caller }) => tenant(deps, caller, params)));
}

/**
 * Makes an Elysia instance at the path of one subscription. The macro `subscription: true` finds the subscription among
 * those of the partner.
 */
export function readingBase<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  audience: Audience<L, O>,
) {
  return new Elysia({ prefix: `${BASE_PATH}${audience.one}` as const, tags: [audience.tag] })
    .use(deps.checks)
    .macro(
      loads("subscription", ({ params, ...caller }) =>
        readableSubscription(deps, audience, caller, params),
      ),
    );
}

/** Finds the subscription of a path, among those that the caller may read. */
export async function readableSubscription<L extends string, O extends string>(
  deps: WebhookRouteDeps,
  { tenant, id }: Audience<L, O>,
  caller: Caller,
  params: PathParams,
) {
  return findOpened(deps, caller.principal, await tenant(deps, caller, params), params[id]);
}

/**
 * Finds a subscription of a partner. Malformed ids, and the ids of unknown, foreign and deleted subscriptions, get the
 * same 404 (contract 2.6 and 3.5). For the session of a portal link, a subscription that the link does not open does
 * not exist.
 */
async function findOpened(
  deps: WebhookRouteDeps,
  { pages }: Principal,
  partnerId: number,
  id = "",
): Promise<Subscription> {
  const isOpened = opensSubscription(pages, id) && isUlid(id);
  const found = isOpened ? await queries.subscriptionById(deps.db, partnerId, id) : undefined;
  if (found === undefined) throw new Problem("not_found");
  return found;
}

/**
 * Makes an Elysia instance at `/partner/webhooks`. The macro `subscription: true` finds the subscription `:id` among
 * those of the caller's partner.
 */
export function webhookRoutesBase(deps: WebhookRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/webhooks`, tags: ["Webhooks"] })
    .use(deps.checks)
    .macro(
      loads("subscription", ({ principal, params }) =>
        findOpened(deps, principal, tenantOf(principal), params["id"]),
      ),
    );
}
