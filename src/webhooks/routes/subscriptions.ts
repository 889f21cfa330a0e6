import { Type } from "@sinclair/typebox";

import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
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
import { reading, webhookRoutesBase, writing, type WebhookRouteDeps } from "./base.ts";

/** Written once, because its schemas and examples make it the longest answer of all, and it never changes. */
const CATALOG_TEXT = JSON.stringify({
  events: CATALOG_EVENTS,
  batch_interval_hours: BATCH_INTERVAL_HOURS,
});

/** Contract 6.9: list, create, and what may be subscribed to. */
export function collectionRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps)
    .get(
      "",
      async ({ principal, query }) => {
        const page = pageOf(query);
        const rows = await listSubscriptions(deps, principal, page);
        return listOf(rows, page, { key: (one) => one.id, show: showSubscription });
      },
      {
        access: reading,
        query: Type.Object(pageQuery(isUlid)),
        response: { 200: listSchema(SubscriptionObject) },
        detail: {
          summary: "List subscriptions",
          description: "Those that are not deleted, newest first.",
        },
      },
    )
    .get(
      "/events",
      () => new Response(CATALOG_TEXT, { headers: { "Content-Type": "application/json" } }),
      {
        access: reading,
        response: { 200: CatalogAnswer },
        detail: {
          operationId: "listEvents",
          summary: "List event values and batch intervals",
          description: "Each event with the JSON Schema of its full body, and an example.",
        },
      },
    )
    .post(
      "",
      async ({ principal, call, body, status }) => {
        const settings = await readNewSubscription(urlRules(deps), body);
        const { subscription, secret } = await createSubscription(
          deps,
          { principal, call },
          settings,
        );
        return status(201, { ...showSubscription(subscription), secret });
      },
      {
        access: writing,
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

/** Contract 6.9: one subscription. */
export function subscriptionRoutes(deps: WebhookRouteDeps) {
  const update = async (
    caller: Parameters<typeof updateSubscription>[1],
    found: Subscription,
    body: unknown,
  ) => {
    const changes = await readUpdate(urlRules(deps), body, found);
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
      .get("/:id", ({ subscription }) => showSubscription(subscription), {
        access: reading,
        subscription: true,
        response: { 200: SubscriptionObject },
        detail: { summary: "Get a subscription", description: "Never with its secret." },
      })
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
        updating,
      )
  );
}

const urlRules = ({ config, lookup }: WebhookRouteDeps) => ({
  egress: config.egress,
  ...(lookup && { lookup }),
});
