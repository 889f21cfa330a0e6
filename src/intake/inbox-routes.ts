import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import * as queries from "./queries/inbox.ts";
import type { Db, Tx } from "../../db/client.ts";
import { isCheckViolation } from "../../db/errors.ts";
import { recordAudit } from "../audit/queries.ts";
import { inPerson, superAdmin, withStepUp } from "../auth/access/guard.ts";
import { recordTenantRead } from "../auth/access/tenant-reads.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks } from "../http/checks.ts";
import { NO_FIELDS } from "../http/fields.ts";
import { isRowId } from "../http/ids.ts";
import { searchPageAnswer, listSchema, pageOf } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import { shown, shownAs } from "../http/shown.ts";
import type { Clock } from "../lib/clock.ts";
import { invalid, Problem } from "../lib/problem.ts";
import { inboxOf, inboxStatus } from "./queries/inbox.ts";
import { InboxObject, inboxQuery, type InboxRow, InboxStatus } from "./service-model.ts";

interface InboxRouteDeps extends InboxActionDeps {
  readonly checks: Checks;
}

const inboxReading = superAdmin();
const inboxChanging = withStepUp(inPerson(inboxReading));

const positionOf = ({ position }: InboxRow) => String(position);

/** Serves the inbox to operators: its actions, their numbers, and the time of the oldest waiting one (contract 9.8). */
export function inboxRoutes(deps: InboxRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/admin/inbox`, tags: ["Administration"] })
    .use(deps.checks)
    .get(
      "",
      async ({ principal, requestContext, query }) => {
        const page = pageOf(query);
        const found = await inboxOf(deps.db, query.state ?? "rejected", page);
        // No partner is recorded: an action does not contain its partner, and the rows that a rejected action refers to
        // may not exist.
        const read = { partnerId: null, kind: "inbox" } as const;
        await recordTenantRead(deps, { principal, requestContext }, read);
        return searchPageAnswer(found, page, { key: positionOf, show: shownAs(InboxObject) });
      },
      {
        access: inboxReading,
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
      access: inboxReading,
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
        await retryInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: inboxChanging,
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
        await dropInboxAction(deps, { principal, requestContext }, params.id);
        return status(204, undefined);
      },
      {
        access: inboxChanging,
        response: { 204: Type.Void() },
        detail: {
          operationId: "dropInboxAction",
          summary: "Drop an action of the inbox",
          description: "A rejected one, or a waiting one, which is then not taken over.",
        },
      },
    );
}

interface InboxActionDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/** Sets a rejected action of the inbox back to waiting. */
const retryInboxAction = inboxChange("INBOX_RETRIED", async (tx, position) => {
  if (!(await queries.retryInInbox(tx, position))) throw new Problem("not_found");
  return { position };
});

/** Deletes a waiting or rejected action of the inbox. */
const dropInboxAction = inboxChange("INBOX_DROPPED", async (tx, position) => {
  const state = await queries.dropFromInbox(tx, position);
  if (state === undefined) throw new Problem("not_found");
  return { position, state };
});

function inboxChange(
  action: "INBOX_RETRIED" | "INBOX_DROPPED",
  change: (tx: Tx, position: number) => Promise<Readonly<Record<string, unknown>>>,
) {
  return async (
    { db, clock }: InboxActionDeps,
    { principal, requestContext }: Caller,
    text: string,
  ): Promise<void> => {
    if (!isRowId(text)) throw new Problem("not_found");
    const at = clock.now();
    const actor = principal;
    await db
      .transaction(async (tx) => {
        const details = await change(tx, Number(text));
        await recordAudit(tx, { at, action, actor, requestContext, details });
      })
      .catch((error: unknown) => {
        // A retry of a row that is older than the check constraints on sizes may violate them, because they apply to
        // such a row only when it is updated. The answer is then a 422.
        if (isCheckViolation(error)) throw invalid({ action: ["is larger than the inbox takes"] });
        throw error;
      });
  };
}
