import { Type } from "@sinclair/typebox";

import type { Authenticator } from "../../http/access.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { EventStreams } from "../../http/event-stream.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { errorResponse } from "../../http/errors.ts";
import { Problem } from "../../lib/problem.ts";
import { dispatcherState, listBacklogs, watchDispatcher } from "../actions/dispatcher.ts";
import {
  backlogKey,
  BacklogObject,
  backlogQuery,
  DispatcherObject,
  showBacklog,
  showDispatcher,
} from "../dispatcher-model.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps } from "./base.ts";

export interface DispatcherRouteDeps extends AdminRouteDeps {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly streams: EventStreams;
}

/** Contract 10.4: the state of the delivery process, once and live. */
export function dispatcherRoutes(deps: DispatcherRouteDeps) {
  return adminRoutesBase(deps, "")
    .get("/dispatcher", async () => showDispatcher(await dispatcherState(deps)), {
      access: administrating,
      response: { 200: DispatcherObject },
      detail: {
        operationId: "getDispatcher",
        summary: "Show shards, their owners, the lag, blocked heads and disabled subscriptions",
        description: "How deliveries are doing as a whole.",
      },
    })
    .get(
      "/backlogs",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await listBacklogs(deps, query.order ?? "depth", page);
        return listOf(rows, page, { key: backlogKey, show: showBacklog });
      },
      {
        access: administrating,
        query: backlogQuery,
        response: { 200: listSchema(BacklogObject) },
        detail: {
          operationId: "listBacklogs",
          summary: "List subscriptions that are behind",
          description:
            "Those with queued events, the worst first, of 10,000 at most. `last_error` is of the last 100 attempts.",
        },
      },
    )
    .get(
      "/stream",
      ({ principal, requestContext }) =>
        deps.streams.open(principal, (sink, signal) =>
          watchDispatcher(
            deps,
            { sink, mayRead: () => stillMayRead(deps, requestContext) },
            signal,
          ),
        ),
      {
        access: administrating,
        response: {
          200: Type.String({ contentType: "text/event-stream" }),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "followDispatcher",
          summary: "Follow the state of the dispatcher live",
          description:
            "Server-sent events: `dispatcher` every two seconds, the object of `GET /admin/dispatcher`. Five streams per user. It ends with the token.",
        },
      },
    );
}

/** Asks again while a stream is open: the token may be revoked, or the role taken away. */
async function stillMayRead(
  { authenticator }: Pick<DispatcherRouteDeps, "authenticator">,
  requestContext: RequestContext,
): Promise<boolean> {
  try {
    return administrating.refuse(await authenticator.authenticate(requestContext)) === undefined;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
