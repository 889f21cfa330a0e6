import type { Principal } from "../../auth/model.ts";
import { Type } from "@sinclair/typebox";

import { route, type Call } from "../../http/route.ts";
import { Problem } from "../../lib/problem.ts";
import { showHealth, showStats } from "../actions/figures.ts";
import { watchSubscription } from "../actions/watch.ts";
import * as model from "../figures-model.ts";
import { BASE, findWith, reading, type RouteDeps } from "./deps.ts";

export function figureRoutes(deps: RouteDeps) {
  return [...numberRoutes(deps), streamRoute(deps)];
}

function numberRoutes(deps: RouteDeps) {
  return [
    route({
      method: "GET",
      path: `${BASE}/:id/health`,
      summary: "Show how deliveries are doing",
      access: reading,
      answers: { 200: model.HealthObject },
      find: findWith(deps),
      handle: async ({ found }) => model.showHealth(await showHealth(deps, found)),
    }),
    route({
      method: "GET",
      path: `${BASE}/:id/stats`,
      summary: "Show deliveries over time",
      description:
        "One point per step, the range moved out to whole steps; a day in hours by default.",
      access: reading,
      query: model.statsQuery,
      answers: { 200: model.StatsObject },
      find: findWith(deps),
      rules: ({ query }) => model.statsFaults(query, deps.clock.now()),
      async handle({ found, query }) {
        const range = model.readStatsRange(query, deps.clock.now());
        return model.showStats(range, await showStats(deps, found, range));
      },
    }),
  ];
}

function streamRoute(deps: RouteDeps) {
  return route({
    method: "GET",
    path: `${BASE}/:id/stream`,
    summary: "Follow deliveries live",
    description:
      "Server-sent events: `subscription` when it changes, `attempt` for each attempt from now on (at most 100 a second), `health` every five seconds. Five streams per user. It ends with the token.",
    access: reading,
    answers: { 200: Type.String() },
    contentType: "text/event-stream",
    problems: ["overloaded"],
    find: findWith(deps),
    handle: async ({ principal, call, found }) =>
      deps.streams.open(principal.userId, (sink, signal) => {
        const mayRead = () => stillMayRead(deps, principal, call);
        return watchSubscription(deps, found, { sink, mayRead }, signal);
      }),
  });
}

/** Asked again while a stream is open: the token may be revoked, the user moved or the role taken away. */
async function stillMayRead(
  { authenticate }: Pick<RouteDeps, "authenticate">,
  opened: Principal,
  call: Call,
): Promise<boolean> {
  try {
    const principal = await authenticate(call);
    return reading.refuse(principal) === undefined && principal.partnerId === opened.partnerId;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
