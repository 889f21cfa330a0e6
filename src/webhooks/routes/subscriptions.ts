import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { opensSubscription } from "../../auth/portal-pages.ts";
import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import type { Principal } from "../../http/principal.ts";
import { problem } from "../../http/problem-schema.ts";
import {
  createSubscription,
  deleteSubscription,
  listSubscriptions,
} from "../actions/subscriptions.ts";
import { updateSubscription } from "../actions/update-subscription.ts";
import { CATALOG_EVENTS } from "../catalog.ts";
import { newSubscriptionBody, readNewSubscription, readUpdate, updateBody } from "../input.ts";
import {
  BATCH_INTERVAL_HOURS,
  CatalogAnswer,
  showSubscription,
  SubscriptionObject,
  SubscriptionWithSecret,
  type Subscription,
} from "../model.ts";
import {
  creating,
  listBase,
  readingBase,
  webhookRoutesBase,
  writing,
  type Readers,
  type WebhookRouteDeps,
} from "./base.ts";

/** Written once, because its schemas and examples make it the longest answer of all, and it never changes. */
const CATALOG_TEXT = JSON.stringify({
  events: CATALOG_EVENTS,
  batch_interval_hours: BATCH_INTERVAL_HOURS,
});

/** Contract 6.9 and 10.3: the list, one of it, and what may be subscribed to. */
export function subscriptionReading<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  readers: Readers<L, O>,
) {
  const { access, describe } = readers;
  const lists = listBase(deps, readers)
    .get(
      "",
      async ({ principal: { pages }, tenant, query }) => {
        const page = pageOf(query);
        const all = await listSubscriptions(deps, tenant, page);
        const rows = all.filter(({ id }) => opensSubscription(pages, id));
        return listOf(rows, page, { key: (one) => one.id, show: showSubscription });
      },
      {
        access,
        tenant: true,
        query: Type.Object(pageQuery(isUlid)),
        response: { 200: listSchema(SubscriptionObject) },
        detail: describe({
          operationId: "listSubscriptions",
          summary: "List subscriptions",
          description: "Those that are not deleted, newest first.",
        }),
      },
    )
    .get(
      "/events",
      () => new Response(CATALOG_TEXT, { headers: { "Content-Type": "application/json" } }),
      {
        access,
        tenant: true,
        response: { 200: CatalogAnswer },
        detail: describe({
          operationId: "listEvents",
          summary: "List event values and batch intervals",
          description: "Each event with the JSON Schema of its full body, and an example.",
        }),
      },
    );
  const one = readingBase(deps, readers).get(
    "",
    ({ subscription }) => showSubscription(subscription),
    {
      access,
      subscription: true,
      response: { 200: SubscriptionObject },
      detail: describe({
        operationId: "getSubscription",
        summary: "Get a subscription",
        description: "Never with its secret.",
      }),
    },
  );
  return new Elysia().use(lists).use(one);
}

/** Contract 6.9: create. */
export function creationRoute(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps).post(
    "",
    async ({ principal, call, body, status }) => {
      const settings = await readNewSubscription(urlRules(deps, principal), body);
      const { subscription, secret } = await createSubscription(
        deps,
        { principal, call },
        settings,
      );
      return status(201, { ...showSubscription(subscription), secret });
    },
    {
      access: creating,
      body: newSubscriptionBody,
      response: { 201: SubscriptionWithSecret, 409: problem("slot_occupied") },
      detail: {
        summary: "Create a subscription",
        description:
          "A partner has one immediate and one batch subscription. The answer carries the secret of the signatures.",
      },
    },
  );
}

/** Contract 6.9: changes of one subscription. */
export function changeRoutes(deps: WebhookRouteDeps) {
  const update = async (
    caller: Parameters<typeof updateSubscription>[1],
    found: Subscription,
    body: unknown,
  ) => {
    const changes = await readUpdate(urlRules(deps, caller.principal), body, found);
    return showSubscription(await updateSubscription(deps, caller, found, changes));
  };
  const updating = {
    access: writing,
    subscription: true,
    body: updateBody,
    response: { 200: SubscriptionObject },
    detail: {
      summary: "Update a subscription",
      description:
        "Send only what is to change. `delivery_kind` may be sent unchanged. A URL and an ordering hold from the next attempt on; filter and payload mode for events recorded from now on.",
    },
  } as const;
  return (
    webhookRoutesBase(deps)
      .delete(
        "/:id",
        async ({ principal, call, subscription, status }) => {
          await deleteSubscription(deps, { principal, call }, subscription);
          return status(204, undefined);
        },
        {
          access: writing,
          subscription: true,
          response: { 204: Type.Void() },
          detail: {
            summary: "Delete a subscription",
            description: "What is still queued for it is never sent. Its slot is free at once.",
          },
        },
      )
      // `POST` is the documented method (contract 6.9); `PATCH` does the same.
      .post(
        "/:id",
        ({ principal, call, subscription, body }) =>
          update({ principal, call }, subscription, body),
        updating,
      )
      .patch(
        "/:id",
        ({ principal, call, subscription, body }) =>
          update({ principal, call }, subscription, body),
        { ...updating, detail: { ...updating.detail, description: "As by POST." } },
      )
  );
}

const urlRules = ({ config, lookup }: WebhookRouteDeps, { partnerId }: Principal) => ({
  egress: config.egress,
  lookup,
  partnerId,
});
