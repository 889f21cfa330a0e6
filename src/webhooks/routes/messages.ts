import { Type } from "@sinclair/typebox";

import { listSchema, lookOf, pageOf, pageQuery } from "../../http/list.ts";
import { parseInstant } from "../../lib/clock.ts";
import { listMessages } from "../actions/messages.ts";
import { messageFilters, MessageObject, showMessage } from "../message-model.ts";
import { readPosition } from "../message-walk.ts";
import { readingBase, type Readers, type WebhookRouteDeps } from "./base.ts";

const isPosition = (key: string): boolean => readPosition(key) !== undefined;

/** See contract 6.19 and 10.3. */
export function messageReading<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  readers: Readers<L, O>,
) {
  const { access, describe } = readers;
  return readingBase(deps, readers).get(
    "/messages",
    async ({ query, subscription }) => {
      const filter = {
        reviewId: query.review_id,
        externalReviewId: query.external_review_id,
        event: query.event,
        eventId: query.event_id,
        state: query.state,
        outcome: query.outcome,
        status: query.status,
        q: query.q,
        since: parseInstant(query.since),
        until: parseInstant(query.until),
      };
      const { rows, next } = await listMessages(deps, subscription, filter, pageOf(query));
      return lookOf(rows.map(showMessage), next);
    },
    {
      access,
      subscription: true,
      query: Type.Object({ ...pageQuery(isPosition), ...messageFilters }),
      response: { 200: listSchema(MessageObject) },
      detail: describe({
        operationId: "listMessages",
        summary: "List events with their attempts",
        description:
          "One row per event, the newest attempt that fits first. A page may have fewer rows than its limit and still a `next_cursor`: it then looked at all that one call may read. `q` finds text of the error code, or of the beginning of the answer.",
      }),
    },
  );
}
