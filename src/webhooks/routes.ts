import { Type } from "@sinclair/typebox";

import { partnerAdmin } from "../auth/guard.ts";
import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../http/page.ts";
import { Answer, route, type Route } from "../http/route.ts";
import { parseInstant } from "../lib/clock.ts";
import type { Config } from "../lib/config.ts";
import type { Lookup } from "../lib/egress.ts";
import { CATALOG } from "../outbox/event.ts";
import * as actions from "./actions.ts";
import { newSubscriptionBody, readNewSubscription } from "./input.ts";
import {
  AttemptObject,
  attemptFilters,
  BATCH_INTERVAL_HOURS,
  CatalogAnswer,
  showAttempt,
  showSubscription,
  SubscriptionObject,
  SubscriptionWithSecret,
} from "./model.ts";

interface Deps extends actions.WebhookDeps {
  readonly config: Pick<Config, "batchHourMs" | "egress">;
  /** The system's resolver if absent. */
  readonly lookup?: Lookup;
}

const BASE = "/partner/webhooks";
const reading = partnerAdmin("webhooks:read");
const writing = partnerAdmin("webhooks:write");

/** interface.md 4.5, decisions.md 3. */
export function webhookRoutes(deps: Deps): Route[] {
  return [...collectionRoutes(deps), ...subscriptionRoutes(deps)];
}

function collectionRoutes(deps: Deps): Route[] {
  const rules = {
    egress: deps.config.egress,
    ...(deps.lookup && { lookup: deps.lookup }),
  };
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List subscriptions",
      access: reading,
      query: Type.Object(pageQuery),
      answers: { 200: listSchema(SubscriptionObject) },
      async handle({ principal, query }) {
        const page = pageOf(query, isUlid);
        const rows = await actions.listSubscriptions(deps, principal, page);
        return listOf(rows, page, { key: (one) => one.id, show: showSubscription });
      },
    }),
    route({
      method: "POST",
      path: BASE,
      summary: "Create a subscription",
      access: writing,
      body: newSubscriptionBody,
      answers: { 201: SubscriptionWithSecret },
      problems: ["slot_occupied"],
      async handle({ principal, call, body }) {
        const settings = await readNewSubscription(rules, body);
        const caller = { principal, call };
        const { subscription, secret } = await actions.createSubscription(deps, caller, settings);
        return new Answer(201, { ...showSubscription(subscription), secret });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/events`,
      summary: "List event values and batch intervals",
      access: reading,
      answers: { 200: CatalogAnswer },
      handle: async () => ({ events: CATALOG, batch_interval_hours: BATCH_INTERVAL_HOURS }),
    }),
  ];
}

function subscriptionRoutes(deps: Deps): Route[] {
  return [
    route({
      method: "GET",
      path: `${BASE}/:id`,
      summary: "Get a subscription",
      access: reading,
      answers: { 200: SubscriptionObject },
      find: ({ principal, params }) =>
        actions.findSubscription(deps, principal, params["id"] ?? ""),
      handle: async ({ found }) => showSubscription(found),
    }),
    route({
      method: "DELETE",
      path: `${BASE}/:id`,
      summary: "Delete a subscription",
      access: writing,
      answers: { 204: null },
      find: ({ principal, params }) =>
        actions.findSubscription(deps, principal, params["id"] ?? ""),
      async handle({ principal, call, found }) {
        await actions.deleteSubscription(deps, { principal, call }, found);
        return new Answer(204);
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/:id/deliveries`,
      summary: "List delivery attempts",
      access: reading,
      query: Type.Object({ ...pageQuery, ...attemptFilters }),
      answers: { 200: listSchema(AttemptObject) },
      find: ({ principal, params }) =>
        actions.findSubscription(deps, principal, params["id"] ?? ""),
      async handle({ query, found }) {
        const page = pageOf(query, isUlid);
        const filter = {
          event: query.event,
          eventId: query.event_id,
          outcome: query.outcome,
          since: query.since === undefined ? undefined : parseInstant(query.since),
          until: query.until === undefined ? undefined : parseInstant(query.until),
        };
        const rows = await actions.listAttempts(deps, found, filter, page);
        return listOf(rows, page, { key: (one) => one.id, show: showAttempt });
      },
    }),
  ];
}
