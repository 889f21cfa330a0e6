import { Type } from "@sinclair/typebox";

import { superAdmin } from "../../auth/guard.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import { route, type Call } from "../../http/route.ts";
import type { Edge } from "../../http/serve.ts";
import { Problem } from "../../lib/problem.ts";
import type { AdminDeps } from "../actions/deps.ts";
import { dispatcherState, watchDispatcher } from "../actions/dispatcher.ts";
import { DispatcherObject, showDispatcher } from "../dispatcher-model.ts";

export interface StreamDeps extends AdminDeps, Pick<Edge, "authenticate"> {
  readonly streams: EventStreams;
}

const reading = superAdmin();

/** decisions.md 7: the state of the delivery process, once and live. */
export function dispatcherRoutes(deps: StreamDeps) {
  return [
    route({
      method: "GET",
      path: "/admin/dispatcher",
      summary: "Show shards, their owners, the lag, blocked heads and disabled subscriptions",
      access: reading,
      answers: { 200: DispatcherObject },
      handle: async () => showDispatcher(await dispatcherState(deps)),
    }),
    route({
      method: "GET",
      path: "/admin/stream",
      summary: "Follow the state of the dispatcher live",
      description:
        "Server-sent events: `dispatcher` every two seconds, the object of `GET /admin/dispatcher`. Five streams per user. It ends with the token.",
      access: reading,
      answers: { 200: Type.String() },
      contentType: "text/event-stream",
      problems: ["overloaded"],
      handle: async ({ principal, call }) =>
        deps.streams.open(principal.userId, (sink, signal) =>
          watchDispatcher(deps, { sink, mayRead: () => stillMayRead(deps, call) }, signal),
        ),
    }),
  ];
}

/** Asked again while a stream is open: the token may be revoked, or the role taken away. */
async function stillMayRead({ authenticate }: StreamDeps, call: Call): Promise<boolean> {
  try {
    return reading.refuse(await authenticate(call)) === undefined;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
