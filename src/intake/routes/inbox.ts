import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { recordTenantRead } from "../../auth/actions/tenant-reads.ts";
import { inPerson, superAdmin, withStepUp } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { foundOf, listSchema, pageOf } from "../../http/list.ts";
import { shown, shownAs } from "../../http/shown.ts";
import * as actions from "../inbox-actions.ts";
import { inboxOf, inboxStatus } from "../queries/inbox.ts";
import { InboxObject, inboxQuery, type InboxRow, InboxStatus } from "../service-model.ts";

interface InboxRouteDeps extends actions.InboxActionDeps {
  readonly checks: Checks;
}

const reading = superAdmin();
const changing = withStepUp(inPerson(reading));

const positionOf = ({ position }: InboxRow) => String(position);

/** Serves the inbox to operators: its rejected actions and its lag (contract 9.8). */
export function inboxRoutes(deps: InboxRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/inbox`, tags: ["Administration"] })
    .use(deps.checks)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const found = await inboxOf(deps.db, query.state ?? "rejected", page);
        // An action names no partner, and a rejected one perhaps nothing that exists.
        const read = { partnerId: null, kind: "inbox" } as const;
        await recordTenantRead(deps, { principal, requestContext }, read);
        return foundOf(found, page, { key: positionOf, show: shownAs(InboxObject) });
      },
      {
        access: reading,
        query: inboxQuery,
        response: { 200: listSchema(InboxObject) },
        detail: {
          operationId: "listInbox",
          summary: "List actions of the inbox, oldest first",
          description: "The rejected ones, or with `state` the waiting ones.",
        },
      },
    )
    .get("/status", async () => shown(InboxStatus, await inboxStatus(deps.db)), {
      access: reading,
      response: { 200: InboxStatus },
      detail: {
        operationId: "getInboxStatus",
        summary: "Show how far the inbox is behind",
        description: "Counts of its actions, and the time of the first waiting one.",
      },
    })
    .post(
      "/:id/retry",
      async ({ principal, requestContext, params, status }) => {
        await actions.retryInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: changing,
        body: NO_FIELDS,
        response: { 204: Type.Void() },
        detail: {
          operationId: "retryInboxAction",
          summary: "Take a rejected action over again",
          description: "It takes its old place; 404 if it is not rejected.",
        },
      },
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, params, status }) => {
        await actions.dropInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: changing,
        response: { 204: Type.Void() },
        detail: {
          operationId: "dropInboxAction",
          summary: "Drop an action of the inbox",
          description: "A rejected one, or a waiting one, which is then not taken over.",
        },
      },
    );
}
