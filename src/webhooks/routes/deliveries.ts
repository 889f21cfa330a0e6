import { Type } from "@sinclair/typebox";

import { isUlid, listOf, listSchema, pageOf, pageQuery } from "../../http/page.ts";
import { Answer, route } from "../../http/route.ts";
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
import { BASE, findWith, reading, writing, type RouteDeps } from "./deps.ts";

export function deliveryRoutes(deps: RouteDeps) {
  return [...readingRoutes(deps), ...queueingRoutes(deps)];
}

function readingRoutes(deps: RouteDeps) {
  return [
    route({
      method: "GET",
      path: `${BASE}/:id/deliveries`,
      summary: "List delivery attempts",
      description: "Newest first. `since` belongs to the range, `until` does not.",
      access: reading,
      query: Type.Object({ ...pageQuery(isUlid), ...attemptFilters }),
      answers: { 200: listSchema(AttemptObject) },
      find: findWith(deps),
      async handle({ query, found }) {
        const page = pageOf(query);
        const filter = {
          event: query.event,
          eventId: query.event_id,
          outcome: query.outcome,
          since: parseInstant(query.since),
          until: parseInstant(query.until),
        };
        const rows = await listAttempts(deps, found, filter, page);
        return listOf(rows, page, { key: (one) => one.id, show: showAttempt });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/:id/deliveries/:eventId`,
      summary: "Get one delivery with its attempts",
      access: reading,
      answers: { 200: DeliveryObject },
      async find({ principal, params }) {
        const subscription = await findWith(deps)({ principal, params });
        return showEvent(deps, subscription, params["eventId"] ?? "");
      },
      handle: async ({ found }) => showDelivery(found),
    }),
  ];
}

function queueingRoutes(deps: RouteDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/deliveries/:eventId/redeliver`,
      summary: "Deliver an event again",
      description:
        "Queues it behind everything else, under the same `X-SVC-Delivery`, as a new round of up to four attempts.",
      access: writing,
      answers: { 202: QueuedEventAnswer },
      problems: ["already_queued", "subscription_disabled"],
      async find({ principal, params }) {
        const subscription = await findWith(deps)({ principal, params });
        return {
          subscription,
          eventId: await findEvent(deps, subscription, params["eventId"] ?? ""),
        };
      },
      async handle({ principal, call, found: { subscription, eventId } }) {
        await redeliver(deps, { principal, call }, subscription, eventId);
        return new Answer(202, { event_id: eventId });
      },
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/recover`,
      summary: "Queue the undelivered events of a window again",
      description:
        "Every matching event that was recorded from `since` to `until` (now), was not delivered and is not queued, in order; at most 10,000 a call: call again until it answers 0.",
      access: writing,
      body: RecoverBody,
      answers: { 202: RecoverAnswer },
      problems: ["subscription_disabled"],
      find: findWith(deps),
      rules: ({ body }) => recoverFaults(deps, body),
      async handle({ principal, call, found, body }) {
        const since = parseInstant(body.since);
        if (since === undefined) throw new Error(`The schema let ${body.since} pass.`);
        const window = { since, until: parseInstant(body.until) };
        return new Answer(202, { queued: await recover(deps, { principal, call }, found, window) });
      },
    }),
  ];
}
