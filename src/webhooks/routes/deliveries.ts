import { Type } from "@sinclair/typebox";

import { NO_FIELDS } from "../../http/fields.ts";
import { loads } from "../../http/request-state.ts";
import { searchPageAnswer, listSchema, pageAnswer, pageOf, pageQuery } from "../../http/list.ts";
import { isUlid } from "../../http/ids.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import { shown, shownAs } from "../../http/shown.ts";
import { parseInstant } from "../../lib/clock.ts";
import { orNotFound, type WebhookDeps } from "../actions/deps.ts";
import type { ListDeliveries } from "../actions/list-deliveries.ts";
import {
  countRecoverable,
  findEvent,
  recover,
  recoverErrors,
  redeliver,
  redeliverEvents,
  sendBatch,
} from "../actions/queue-events.ts";
import { deliveryState } from "../decide.ts";
import {
  attemptFilters,
  AttemptObject,
  type Delivery,
  DeliveryObject,
  QueuedEventAnswer,
  RecoverAnswer,
  RecoverBody,
  RedeliverAnswer,
  RedeliverBody,
} from "../delivery-model.ts";
import {
  deliveryFilters,
  ListedDeliveryObject,
  readDeliveryCursor,
} from "../delivery-list-model.ts";
import { numbersText, readNumbers } from "../../outbox/event-numbers.ts";
import { showSubscription, type Subscription, SubscriptionObject } from "../model.ts";
import { attemptsOf, attemptsOfEvent } from "../queries/attempts.ts";
import { deliveryOf } from "../queries/events.ts";
import {
  readableSubscription,
  type Audience,
  readingBase,
  PARTNERS,
  type WebhookRouteDeps,
  webhookRoutesBase,
  writing,
} from "./base.ts";

/**
 * Serves the list of attempts and one delivery with its attempts, to partners and operators (contract 6.13 and 10.3).
 */
export function deliveryReadRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  return readingBase(deps, audience)
    .macro(
      loads("delivery", async ({ params, ...caller }) =>
        showEvent(
          deps,
          await readableSubscription(deps, audience, caller, params),
          params["eventId"] ?? "",
        ),
      ),
    )
    .get(
      "/deliveries",
      async ({ query, subscription }) => {
        const page = pageOf(query);
        const filter = {
          event: query.event,
          eventId: query.event_id,
          outcome: query.outcome,
          since: parseInstant(query.since),
          until: parseInstant(query.until),
        };
        const found = await attemptsOf(deps.db, subscription.id, filter, page);
        return searchPageAnswer(found, page, {
          key: (one) => one.id,
          show: shownAs(AttemptObject),
        });
      },
      {
        access,
        subscription: true,
        query: Type.Object({ ...pageQuery(isUlid), ...attemptFilters }),
        response: { 200: listSchema(AttemptObject) },
        detail: describe({
          operationId: "listAttempts",
          summary: "List delivery attempts",
          description: "Newest first.",
        }),
      },
    )
    .get("/deliveries/:eventId", ({ delivery }) => shown(DeliveryObject, delivery), {
      access,
      delivery: true,
      response: { 200: DeliveryObject },
      detail: describe({
        operationId: "getDelivery",
        summary: "Get one delivery with its attempts",
        description:
          "Shows the exact body and headers of each attempt and the beginning of the response.",
      }),
    });
}

/** Returns the validation errors of a redelivery that does not contain exactly one of its two lists. */
function oneList({ body }: RuleInput<typeof RedeliverBody>) {
  const isOne = "event_ids" in body !== "sequences" in body;
  const error = isOne ? undefined : "send exactly one of event_ids and sequences";
  return { event_ids: error, sequences: error };
}

/** Serves the routes that queue events: redelivery, recovery and the batch (contract 6.14, 6.15 and 7.14). */
export function redeliveryRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps)
    .macro(
      loads("event", async ({ params, ...caller }) => {
        const subscription = await readableSubscription(deps, PARTNERS, caller, params);
        return { subscription, id: await findEvent(deps, subscription, params["eventId"] ?? "") };
      }),
    )
    .post(
      "/:id/deliveries/:eventId/redeliver",
      async ({ principal, requestContext, event: { subscription, id }, status }) => {
        await redeliver(deps, { principal, requestContext }, subscription, id);
        return status(202, { event_id: id });
      },
      {
        access: writing,
        event: true,
        body: NO_FIELDS,
        response: {
          202: QueuedEventAnswer,
          409: errorResponse("already_queued", "subscription_disabled"),
        },
        detail: {
          operationId: "redeliver",
          summary: "Deliver an event again",
          description:
            "Queues the event at the end, with the same `X-SVC-Delivery`, as a new round. A waiting retry is made at once instead.",
        },
      },
    )
    .post(
      "/:id/redeliver",
      async ({ principal, requestContext, subscription, body, status }) => {
        const caller = { principal, requestContext };
        const queued = await redeliverEvents(deps, caller, subscription, body);
        return status(202, { queued });
      },
      {
        access: writing,
        subscription: true,
        body: RedeliverBody,
        rules: oneList,
        response: { 202: RedeliverAnswer, 409: errorResponse("subscription_disabled") },
        detail: {
          operationId: "redeliverEvents",
          summary: "Deliver several events again",
          description:
            "In the order of `event_ids` or `sequences`, each as a new round. Events that are unknown or already queued are ignored.",
        },
      },
    )
    .post(
      "/:id/recover",
      async ({ principal, requestContext, subscription, body, status }) => {
        const since = parseInstant(body.since);
        if (since === undefined) throw new Error(`The schema let ${body.since} pass.`);
        const window = { since, until: parseInstant(body.until) };
        if (body.dry_run === true)
          return status(200, { queued: await countRecoverable(deps, subscription, window) });
        const caller = { principal, requestContext };
        const numbers = await recover(deps, caller, subscription, window);
        return status(202, { queued: numbers.length, ...shownNumbers(numbers) });
      },
      {
        access: writing,
        subscription: true,
        body: RecoverBody,
        rules: ({ body }: RuleInput<typeof RecoverBody>) => recoverErrors(deps, body),
        response: {
          200: RecoverAnswer,
          202: RecoverAnswer,
          409: errorResponse("subscription_disabled"),
        },
        detail: {
          operationId: "recover",
          summary: "Queue the undelivered events of a period again",
          description:
            "Queues, in order, up to 10,000 events that were recorded from `since` to `until` (default: now) and are neither delivered nor queued. Repeat it until it returns 0. With `dry_run` it counts them and returns 200.",
        },
      },
    )
    .post(
      "/:id/batch",
      async ({ principal, requestContext, subscription }) =>
        showSubscription(await sendBatch(deps, { principal, requestContext }, subscription)),
      {
        access: writing,
        subscription: true,
        body: NO_FIELDS,
        response: { 200: SubscriptionObject, 409: errorResponse("subscription_disabled") },
        detail: {
          operationId: "sendBatch",
          summary: "Send the waiting batch now",
          description: "The next one follows an interval later.",
        },
      },
    );
}

/**
 * The most attempts in the response for one delivery: the newest ones, and fewer if they are large. The list of
 * attempts contains all.
 */
const ATTEMPTS_SHOWN = 100;

/**
 * Reads the delivery of an event. Throws `not_found` if the event was never queued for the subscription, or has been
 * purged.
 */
async function showEvent(
  { db }: Pick<WebhookDeps, "db">,
  subscription: Subscription,
  eventId: string,
): Promise<Delivery> {
  const row = orNotFound(
    isUlid(eventId) ? await deliveryOf(db, subscription.id, eventId) : undefined,
  );
  return {
    ...row,
    state: deliveryState(row.state, subscription),
    attempts: await attemptsOfEvent(db, subscription.id, eventId, ATTEMPTS_SHOWN),
  };
}

/** Shows the numbers of events as the filter of messages takes them, if all events have one. */
function shownNumbers(numbers: readonly (number | null)[]) {
  const known = numbers.filter((one) => one !== null);
  const isShown = known.length > 0 && known.length === numbers.length;
  return isShown ? { sequences: numbersText(known) } : {};
}

const isDeliveryCursor = (key: string): boolean => readDeliveryCursor(key) !== undefined;

/** Serves the list of deliveries, one per event, to partners and operators (contract 6.19 and 10.3). */
export function deliveryListRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps & { readonly listDeliveries: ListDeliveries },
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  return readingBase(deps, audience).get(
    "/messages",
    async ({ query, subscription }) => {
      const filter = {
        reviewId: query.review_id,
        externalReviewId: query.external_review_id,
        event: query.event,
        eventId: query.event_id,
        numbers: query.sequence === undefined ? undefined : readNumbers(query.sequence),
        state: query.state,
        outcome: query.outcome,
        status: query.status,
        q: query.q,
        since: parseInstant(query.since),
        until: parseInstant(query.until),
      };
      const { rows, next } = await deps.listDeliveries(subscription, filter, pageOf(query));
      return pageAnswer(rows.map(shownAs(ListedDeliveryObject)), next);
    },
    {
      access,
      subscription: true,
      query: Type.Object({ ...pageQuery(isDeliveryCursor), ...deliveryFilters }),
      response: { 200: listSchema(ListedDeliveryObject) },
      detail: describe({
        operationId: "listMessages",
        summary: "List deliveries with their attempts",
        description:
          "One row per event, sorted by `listed_at`, newest first. A page may be short and still have a `next_cursor`. `q` searches the error code and the beginning of the response.",
      }),
    },
  );
}
