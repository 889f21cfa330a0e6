import { Type } from "@sinclair/typebox";

import type { Authenticator } from "../../http/access.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { type EventSink, type EventStreams, messageOf } from "../../http/event-stream.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { errorResponse } from "../../http/errors.ts";
import { Problem } from "../../lib/problem.ts";
import {
  backlogKey,
  BacklogObject,
  backlogQuery,
  DispatcherObject,
  showBacklog,
  showDispatcher,
} from "../dispatcher-model.ts";
import { dispatcherState, listBacklogs } from "../queries/dispatcher.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps } from "./base.ts";

const POLL_MS = 2_000;

export interface DispatcherRouteDeps extends AdminRouteDeps {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly streams: EventStreams;
}

/**
 * Defines the routes that return the state of the dispatchers, once or as a stream, and the list of backlogs
 * (contract 10.4).
 */
export function dispatcherRoutes(deps: DispatcherRouteDeps) {
  return adminRoutesBase(deps, "")
    .get("/dispatcher", async () => showState(deps), {
      access: administrating,
      auditedRead: "dispatcher",
      response: { 200: DispatcherObject },
      detail: {
        operationId: "getDispatcher",
        summary: "Show shards, their owners, the lag, blocked heads and disabled subscriptions",
        description: "Shows the state of all deliveries.",
      },
    })
    .get(
      "/backlogs",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await listBacklogs(deps.db, query.order ?? "depth", page);
        return listOf(rows, page, { key: backlogKey, show: showBacklog });
      },
      {
        access: administrating,
        auditedRead: "backlogs",
        query: backlogQuery,
        response: { 200: listSchema(BacklogObject) },
        detail: {
          operationId: "listBacklogs",
          summary: "List subscriptions with queued events",
          description:
            "The deepest or oldest queue first, among at most 10,000. `last_error` is from the last 100 attempts.",
        },
      },
    )
    .get(
      "/stream",
      ({ principal, requestContext }) =>
        deps.streams.open(principal, (sink, signal) =>
          streamState(deps, { sink, requestContext }, signal),
        ),
      {
        access: administrating,
        auditedRead: "dispatcher",
        response: {
          200: Type.String({ contentType: "text/event-stream" }),
          503: errorResponse("overloaded"),
        },
        detail: {
          operationId: "followDispatcher",
          summary: "Follow the state of the dispatcher live",
          description:
            "Server-sent events: `dispatcher` every two seconds, the object of `GET /admin/dispatcher`. At most five streams per user.",
        },
      },
    );
}

async function showState({ db, clock }: Pick<DispatcherRouteDeps, "db" | "clock">) {
  return showDispatcher(await dispatcherState(db, clock.now()));
}

/**
 * Sends the state of the dispatchers every two seconds, until the signal aborts or the caller may no longer read it.
 */
async function streamState(
  deps: DispatcherRouteDeps,
  { sink, requestContext }: { readonly sink: EventSink; readonly requestContext: RequestContext },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && (await stillMayRead(deps, requestContext))) {
    sink.send(messageOf("dispatcher", await showState(deps)));
    await deps.clock.sleep(POLL_MS, signal);
  }
}

/**
 * Returns whether the caller of an open stream may still read it. The token is checked again, because it may have been
 * revoked, or the role of the user changed, since the stream was opened.
 */
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
