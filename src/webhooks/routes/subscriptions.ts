import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";

import { withStepUpOfReceivers } from "../../auth/access/guard.ts";
import { opensSubscription } from "../../auth/access/portal-pages.ts";
import { checkedByHandler, examine } from "../../http/fields.ts";
import { listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { isUlid } from "../../http/ids.ts";
import type { Principal } from "../../http/principal.ts";
import { errorResponse } from "../../http/errors.ts";
import { checkNewWebhookUrl, type EgressPolicy } from "../../lib/egress.ts";
import { type Fields, fieldsOf } from "../../lib/fields.ts";
import type { Lookup } from "../../lib/name-resolver.ts";
import { type FieldErrors, invalid } from "../../lib/problem.ts";
import { SUBSCRIBABLE_EVENTS, TEST_EVENT } from "../../outbox/event.ts";
import {
  createSubscription,
  deleteSubscription,
  updateSubscription,
} from "../actions/subscriptions.ts";
import { eventsError, intervalError } from "../decide.ts";
import { EVENT_CALLBACKS } from "../event-description.ts";
import { CATALOG_EVENTS } from "../event-model.ts";
import { headersError, movedHeadersError } from "../header-rules.ts";
import { CatalogAnswer } from "../event-model.ts";
import {
  BATCH_INTERVAL_HOURS,
  NewSubscriptionBody,
  type NewSubscriptionInput,
  showSecretForms,
  showSubscription,
  type Subscription,
  SubscriptionObject,
  type SubscriptionUpdate,
  SubscriptionUpdateBody,
  SubscriptionWithSecret,
} from "../model.ts";
import { listSubscriptions } from "../queries/subscriptions.ts";
import {
  creating,
  listBase,
  type Audience,
  readingBase,
  type WebhookRouteDeps,
  webhookRoutesBase,
  writing,
} from "./base.ts";

export interface UrlRules {
  readonly egress: EgressPolicy;
  /** The DNS look-up of the webhook's host; the resolver of the system if absent. */
  readonly lookup?: Lookup | undefined;
  /** The partner that owns the subscription. */
  readonly partnerId?: number | null;
}

// The handlers check both bodies, by `readNewSubscription` and `readUpdate`, to report schema and rule errors in one
// 422.
const newSubscriptionBody = checkedByHandler(NewSubscriptionBody);
const updateBody = checkedByHandler(SubscriptionUpdateBody);

/**
 * Reads the body of a request that creates a subscription. One 422 names all invalid fields, whichever rule they
 * break (contract 2.5 and 6.4).
 */
export async function readNewSubscription(
  rules: UrlRules,
  body: unknown,
): Promise<NewSubscriptionInput> {
  const shape = examine(NewSubscriptionBody, withTrimmedLabel(body));
  const fieldErrors: FieldErrors = "fieldErrors" in shape ? { ...shape.fieldErrors } : {};
  const given = fieldsOf(body);
  Object.assign(fieldErrors, ruleErrors(given));
  const interval = intervalError(given);
  if (interval !== undefined) fieldErrors["batch_interval_hours"] ??= [interval];
  const url = await urlError(rules, given["webhook_url"]);
  if (url !== undefined) fieldErrors["webhook_url"] ??= [url];
  if ("value" in shape && Object.keys(fieldErrors).length === 0) return shape.value;
  throw invalid(fieldErrors);
}

/**
 * Reads the body of a request that updates a subscription. Every field that is present is checked by the rules for a
 * new subscription.
 */
async function readUpdate(
  rules: UrlRules,
  body: unknown,
  current: Pick<Subscription, "deliveryKind" | "webhookUrl" | "headerNames">,
): Promise<SubscriptionUpdate> {
  const shape = examine(SubscriptionUpdateBody, withTrimmedLabel(body));
  const fieldErrors: FieldErrors = "fieldErrors" in shape ? { ...shape.fieldErrors } : {};
  const given = fieldsOf(body);
  Object.assign(fieldErrors, readOnlyErrors(given), ruleErrors(given));
  const headers = movedHeadersError(current, given);
  if (headers !== undefined) fieldErrors["headers"] = [headers];
  const { deliveryKind } = current;
  if ("delivery_kind" in given && given["delivery_kind"] !== deliveryKind)
    fieldErrors["delivery_kind"] ??= [
      `must stay ${deliveryKind}: to use the other kind, create another subscription`,
    ];
  if ("batch_interval_hours" in given) {
    const interval = intervalError({ ...given, delivery_kind: deliveryKind });
    if (interval !== undefined) fieldErrors["batch_interval_hours"] ??= [interval];
  }
  const url = await urlError(rules, given["webhook_url"]);
  if (url !== undefined) fieldErrors["webhook_url"] ??= [url];
  if ("value" in shape && Object.keys(fieldErrors).length === 0) return shape.value;
  throw invalid(fieldErrors);
}

/** Trims the label, so that a label of spaces counts as empty (contract 6.4). */
function withTrimmedLabel(body: unknown): unknown {
  const given = fieldsOf(body);
  const { label } = given;
  return typeof label === "string" ? { ...given, label: label.trim() } : body;
}

/** Reports fields of the subscription object that an update cannot set. */
function readOnlyErrors(given: Fields): FieldErrors {
  const known = Object.keys(SubscriptionObject.properties);
  const readOnly = known.filter((field) => !(field in SubscriptionUpdateBody.properties));
  const sent = readOnly.filter((field) => Object.hasOwn(given, field));
  return Object.fromEntries(sent.map((field) => [field, ["is read-only"]]));
}

/** Checks the event filter and the headers. Their errors name the invalid part, so they replace those of the schema. */
function ruleErrors(given: Fields): FieldErrors {
  const events = eventsError(given["events"], SUBSCRIBABLE_EVENTS, TEST_EVENT);
  const headers = headersError(given["headers"]);
  return { ...(events && { events: [events] }), ...(headers && { headers: [headers] }) };
}

async function urlError(rules: UrlRules, url: unknown): Promise<string | undefined> {
  if (typeof url !== "string") return undefined;
  const { egress, lookup, partnerId } = rules;
  const check = await checkNewWebhookUrl(url, egress, { lookup, partnerId });
  return check.kind === "refused" ? check.reason : undefined;
}

/**
 * The event catalog as text. It is serialised once, because it never changes and is the longest response of the API.
 */
const CATALOG_TEXT = JSON.stringify({
  events: CATALOG_EVENTS,
  batch_interval_hours: BATCH_INTERVAL_HOURS,
});

/** Serves the list of subscriptions, one subscription and the event catalog (contract 6.9 and 10.3). */
export function subscriptionReadRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  const lists = listBase(deps, audience)
    .get(
      "",
      async ({ principal: { pages }, tenant, query }) => {
        const page = pageOf(query);
        const all = await listSubscriptions(deps.db, tenant, page);
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
          description: "Newest first, without deleted ones.",
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
          description: "Each event has the JSON Schema of its full body and an example.",
        }),
      },
    );
  const one = readingBase(deps, audience).get(
    "",
    ({ subscription }) => showSubscription(subscription),
    {
      access,
      subscription: true,
      response: { 200: SubscriptionObject },
      detail: describe({
        operationId: "getSubscription",
        summary: "Get a subscription",
        description: "The secret is not returned.",
      }),
    },
  );
  return join(lists, one);
}

/** Serves the creation of a subscription (contract 6.9). */
export function creationRoute(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps).post(
    "",
    async ({ principal, requestContext, body, status }) => {
      const input = await readNewSubscription(urlRules(deps, principal), body);
      const { subscription, secret } = await createSubscription(
        deps,
        { principal, requestContext },
        input,
      );
      return status(201, {
        ...showSubscription(subscription),
        ...showSecretForms(secret, subscription),
      });
    },
    {
      access: creating,
      body: newSubscriptionBody,
      response: {
        201: SubscriptionWithSecret,
        409: errorResponse("slot_occupied", "company_inactive"),
      },
      detail: {
        summary: "Create a subscription",
        description:
          "A partner has one immediate and one batch subscription. The response has the signing secret.",
        callbacks: EVENT_CALLBACKS,
      },
    },
  );
}

/** Serves update and deletion of a subscription (contract 6.9). */
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
    access: withStepUpOfReceivers(writing),
    subscription: true,
    body: updateBody,
    response: { 200: SubscriptionObject },
    detail: {
      summary: "Update a subscription",
      description:
        "Send only the fields to change. `delivery_kind` may be sent unchanged. URL, ordering, headers, `standard_webhooks` and `sequence_headers` apply from the next attempt on; filter and payload mode apply to events recorded from now on. Changing the URL or the headers requires a fresh session; a changed URL requires the headers again.",
    },
  } as const;
  return (
    webhookRoutesBase(deps)
      .delete(
        "/:id",
        async ({ principal, requestContext, subscription, status }) => {
          await deleteSubscription(deps, { principal, requestContext }, subscription);
          return status(204, undefined);
        },
        {
          access: writing,
          subscription: true,
          response: { 204: Type.Void(), 409: errorResponse("disabled_by_operator") },
          detail: {
            summary: "Delete a subscription",
            description:
              "Queued events are not sent. You can create another subscription of this kind immediately.",
          },
        },
      )
      // `POST` is the documented method (contract 6.9). `PATCH` does the same.
      .post(
        "/:id",
        ({ principal, requestContext, subscription, body }) =>
          update({ principal, requestContext }, subscription, body),
        updating,
      )
      .patch(
        "/:id",
        ({ principal, requestContext, subscription, body }) =>
          update({ principal, requestContext }, subscription, body),
        { ...updating, detail: { ...updating.detail, description: "Same as POST." } },
      )
  );
}

const urlRules = ({ config, lookup }: WebhookRouteDeps, { partnerId }: Principal) => ({
  egress: config.egress,
  lookup,
  partnerId,
});
