import { Type } from "@sinclair/typebox";

import { finds } from "../../http/finds.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/list.ts";
import { problem } from "../../http/problem-schema.ts";
import type { Judged } from "../../http/rules.ts";
import { parseInstant } from "../../lib/clock.ts";
import { listAttempts, showEvent } from "../actions/deliveries.ts";
import { findEvent, recover, recoverFaults, redeliver } from "../actions/queue-events.ts";
import {
  AttemptObject,
  attemptFilters,
  DeliveryObject,
  QueuedEventAnswer,
  RecoverAnswer,
  RecoverBody,
  showAttempt,
  showDelivery,
} from "../delivery-model.ts";
import {
  readable,
  readingBase,
  THE_PARTNER,
  webhookRoutesBase,
  writing,
  type Readers,
  type WebhookRouteDeps,
} from "./base.ts";

/** See contract 6.13 and 10.3. */
export function deliveryReading<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  readers: Readers<L, O>,
) {
  const { access, describe } = readers;
  return readingBase(deps, readers)
    .macro(
      finds("delivery", async ({ principal, params }) =>
        showEvent(deps, await readable(deps, readers, principal, params), params["eventId"] ?? ""),
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
        const rows = await listAttempts(deps, subscription, filter, page);
        return listOf(rows, page, { key: (one) => one.id, show: showAttempt });
      },
      {
        access,
        subscription: true,
        query: Type.Object({ ...pageQuery(isUlid), ...attemptFilters }),
        response: { 200: listSchema(AttemptObject) },
        detail: describe({
          operationId: "listAttempts",
          summary: "List delivery attempts",
          description: "Newest first. `since` belongs to the range, `until` does not.",
        }),
      },
    )
    .get("/deliveries/:eventId", ({ delivery }) => showDelivery(delivery), {
      access,
      delivery: true,
      response: { 200: DeliveryObject },
      detail: describe({
        operationId: "getDelivery",
        summary: "Get one delivery with its attempts",
        description: "The exact body and headers of each attempt, and the beginning of the answer.",
      }),
    });
}

/** See contract 6.14 and 6.15. */
export function queueingRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps)
    .macro(
      finds("event", async ({ principal, params }) => {
        const subscription = await readable(deps, THE_PARTNER, principal, params);
        return { subscription, id: await findEvent(deps, subscription, params["eventId"] ?? "") };
      }),
    )
    .post(
      "/:id/deliveries/:eventId/redeliver",
      async ({ principal, call, event: { subscription, id }, status }) => {
        await redeliver(deps, { principal, call }, subscription, id);
        return status(202, { event_id: id });
      },
      {
        access: writing,
        event: true,
        body: NO_FIELDS,
        response: {
          202: QueuedEventAnswer,
          409: problem("already_queued", "subscription_disabled"),
        },
        detail: {
          operationId: "redeliver",
          summary: "Deliver an event again",
          description:
            "Queues it behind everything else, under the same `X-SVC-Delivery`, as a new round of up to four attempts.",
        },
      },
    )
    .post(
      "/:id/recover",
      async ({ principal, call, subscription, body, status }) => {
        const since = parseInstant(body.since);
        if (since === undefined) throw new Error(`The schema let ${body.since} pass.`);
        const window = { since, until: parseInstant(body.until) };
        const queued = await recover(deps, { principal, call }, subscription, window);
        return status(202, { queued });
      },
      {
        access: writing,
        subscription: true,
        body: RecoverBody,
        rules: ({ body }: Judged<typeof RecoverBody>) => recoverFaults(deps, body),
        response: { 202: RecoverAnswer, 409: problem("subscription_disabled") },
        detail: {
          operationId: "recover",
          summary: "Queue the undelivered events of a window again",
          description:
            "Every matching event that was recorded from `since` to `until` (now), was not delivered and is not queued, in order; at most 10,000 a call: call again until it answers 0.",
        },
      },
    );
}
