import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

import type { Access } from "../../http/access.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Caller } from "../../http/principal.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import { shown } from "../../http/shown.ts";
import { ulidText } from "../../http/text.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { showHealth, showIncident, showPastIncidents, showStats } from "../actions/stats.ts";
import type { WatchedSubscriptions } from "../actions/watch.ts";
import { IncidentHistory, IncidentObject } from "../incident-model.ts";
import * as model from "../stats-model.ts";
import { readingBase, type Audience, type WebhookRouteDeps } from "./base.ts";

/** Serves health, incident and stats of a subscription to partners and operators (contract 6.17, 6.18 and 10.3). */
export function statsRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  return readingBase(deps, audience)
    .get(
      "/health",
      async ({ subscription }) => shown(model.HealthObject, await showHealth(deps, subscription)),
      {
        access,
        subscription: true,
        response: { 200: model.HealthObject },
        detail: describe({
          operationId: "getHealth",
          summary: "Show the health of a subscription",
          description: "Shows current figures and figures of the last 24 hours.",
        }),
      },
    )
    .get(
      "/incident",
      async ({ subscription }) => shown(IncidentObject, await showIncident(deps, subscription)),
      {
        access,
        subscription: true,
        response: { 200: IncidentObject },
        detail: describe({
          operationId: "getIncident",
          summary: "Show the current incident: its start, causes and alerts",
          description: "`since` is null without an incident.",
        }),
      },
    )
    .get(
      "/incidents",
      async ({ subscription }) =>
        shown(IncidentHistory, { incidents: await showPastIncidents(deps, subscription) }),
      {
        access,
        subscription: true,
        response: { 200: IncidentHistory },
        detail: describe({
          operationId: "listIncidents",
          summary: "List past incidents",
          description:
            "The newest 50 incidents within the retention time, without the current one.",
        }),
      },
    )
    .get(
      "/stats",
      async ({ subscription, query }) => {
        const range = model.readStatsRange(query, deps.clock.now());
        const points = await showStats(deps, subscription, range);
        return shown(model.StatsObject, { ...range, step: range.stepMs / 1000, points });
      },
      {
        access,
        subscription: true,
        query: model.statsQuery,
        rules: ({ query }: RuleInput<never, typeof model.statsQuery>) =>
          model.statsErrors(query, deps.clock.now()),
        response: { 200: model.StatsObject },
        detail: describe({
          operationId: "getStats",
          summary: "Show statistics of deliveries over time",
          description:
            "Returns one point per step and extends the range to whole steps. Default: the last day in steps of an hour.",
        }),
      },
    );
}

/** Serves the live stream of a subscription (contract 6.18). */
export function streamRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  watched: WatchedSubscriptions,
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  return readingBase(deps, audience).get(
    "/stream",
    ({ principal, requestContext, subscription, query }) => {
      const mayRead = () => stillMayRead(deps, { access, principal, requestContext });
      const { jti } = principal;
      const after = lastEventId(requestContext);
      const withBodies = query.include === "body";
      const feed = withBodies || after !== undefined ? { withBodies, after } : undefined;
      return deps.streams.open(principal, (sink, signal) =>
        watched.follow(subscription, { jti, sink, mayRead, feed }, signal),
      );
    },
    {
      access,
      subscription: true,
      query: model.streamQuery,
      response: {
        200: Type.String({ contentType: "text/event-stream" }),
        503: errorResponse("overloaded"),
      },
      detail: describe({
        operationId: "followDeliveries",
        summary: "Follow deliveries live",
        description:
          "Server-sent events: `subscription` when the subscription changes, `attempt` for each new attempt (at most the newest 100 of a poll every 1.3 s), `health` every five seconds. At most five streams per user. The stream ends when the token is no longer valid. With `include=body`, every attempt is sent, with its exact headers and body. With the header `Last-Event-ID`, the stream begins with all attempts since that attempt, and may repeat attempts of the 30 s before it.",
      }),
    },
  );
}

const EventId = ulidText();

/**
 * Returns the id of the attempt after which the client resumes the stream. Throws a 422 for text that is not a ULID,
 * because it has no position in the stream.
 */
function lastEventId({ headers }: RequestContext): string | undefined {
  const given = headers.get("last-event-id") ?? "";
  if (given === "") return undefined;
  if (Value.Check(EventId, given)) return given;
  throw invalid({ "Last-Event-ID": ["must be the id of an attempt"] });
}

/**
 * Repeats the access checks while a stream is open, because since its start the token may have been revoked, the user
 * moved to another partner, or the role taken away.
 */
async function stillMayRead(
  { authenticator }: Pick<WebhookRouteDeps, "authenticator">,
  opened: Caller & { readonly access: Access },
): Promise<boolean> {
  try {
    const principal = await authenticator.authenticate(opened.requestContext);
    const isRefused = opened.access.refuse(principal) !== undefined;
    return !isRefused && principal.partnerId === opened.principal.partnerId;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
