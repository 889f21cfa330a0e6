import { Type } from "@sinclair/typebox";

import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/page.ts";
import { Answer, route } from "../../http/route.ts";
import { CATALOG } from "../../outbox/event.ts";
import * as actions from "../actions/subscriptions.ts";
import { updateSubscription } from "../actions/update-subscription.ts";
import { newSubscriptionBody, readNewSubscription, readUpdate, updateBody } from "../input.ts";
import {
  BATCH_INTERVAL_HOURS,
  CatalogAnswer,
  showSubscription,
  SubscriptionObject,
  SubscriptionWithSecret,
} from "../model.ts";
import { BASE, findWith, reading, writing, type RouteDeps } from "./deps.ts";

export function subscriptionRoutes(deps: RouteDeps) {
  return [...collectionRoutes(deps), ...singleRoutes(deps), ...updateRoutes(deps)];
}

const rulesOf = ({ config, lookup }: RouteDeps) => ({
  egress: config.egress,
  ...(lookup && { lookup }),
});

function collectionRoutes(deps: RouteDeps) {
  return [
    route({
      method: "GET",
      path: BASE,
      summary: "List subscriptions",
      description: "Those that are not deleted, newest first.",
      access: reading,
      query: Type.Object(pageQuery(isUlid)),
      answers: { 200: listSchema(SubscriptionObject) },
      async handle({ principal, query }) {
        const page = pageOf(query);
        const rows = await actions.listSubscriptions(deps, principal, page);
        return listOf(rows, page, { key: (one) => one.id, show: showSubscription });
      },
    }),
    route({
      method: "POST",
      path: BASE,
      summary: "Create a subscription",
      description:
        "A partner has one immediate and one batch subscription. The answer carries the secret of the signatures.",
      access: writing,
      body: newSubscriptionBody,
      answers: { 201: SubscriptionWithSecret },
      problems: ["slot_occupied"],
      async handle({ principal, call, body }) {
        const settings = await readNewSubscription(rulesOf(deps), body);
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

function singleRoutes(deps: RouteDeps) {
  return [
    route({
      method: "GET",
      path: `${BASE}/:id`,
      summary: "Get a subscription",
      access: reading,
      answers: { 200: SubscriptionObject },
      find: findWith(deps),
      handle: async ({ found }) => showSubscription(found),
    }),
    route({
      method: "DELETE",
      path: `${BASE}/:id`,
      summary: "Delete a subscription",
      description: "What is still queued for it is never sent. Its slot is free at once.",
      access: writing,
      answers: { 204: null },
      find: findWith(deps),
      async handle({ principal, call, found }) {
        await actions.deleteSubscription(deps, { principal, call }, found);
        return new Answer(204);
      },
    }),
  ];
}

/** `POST` is the documented method (interface.md 4.5); `PATCH` does the same. */
function updateRoutes(deps: RouteDeps) {
  return [updateRoute(deps, "POST"), updateRoute(deps, "PATCH")];
}

function updateRoute<const M extends "POST" | "PATCH">(deps: RouteDeps, method: M) {
  return route({
    method,
    path: `${BASE}/:id`,
    summary: "Update a subscription",
    description:
      "Send only what is to change. `delivery_kind` may be sent unchanged. A URL and an ordering hold from the next attempt on; filter and payload mode for events recorded from now on.",
    access: writing,
    body: updateBody,
    answers: { 200: SubscriptionObject },
    find: findWith(deps),
    async handle({ principal, call, found, body }) {
      const update = await readUpdate(rulesOf(deps), body, found);
      return showSubscription(await updateSubscription(deps, { principal, call }, found, update));
    },
  });
}
