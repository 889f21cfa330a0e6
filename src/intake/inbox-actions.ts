import type { Db, Tx } from "../../db/client.ts";
import { isCheckViolation } from "../../db/errors.ts";
import { recordAudit } from "../auth/queries/audit.ts";
import { isRowId } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import type { Clock } from "../lib/clock.ts";
import { invalid, Problem } from "../lib/problem.ts";
import * as queries from "./queries/inbox.ts";

export interface InboxActionDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/** Puts a rejected action of the inbox back among the waiting ones. */
export const retryInboxAction = inboxChange("INBOX_RETRIED", async (tx, position) => {
  if (!(await queries.retryInInbox(tx, position))) throw new Problem("not_found");
  return { position };
});

/** Deletes an action of the inbox, also a waiting one. */
export const dropInboxAction = inboxChange("INBOX_DROPPED", async (tx, position) => {
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
        // The check of the sizes is not validated on older rows, but holds for a row that waits again.
        if (isCheckViolation(error)) throw invalid({ action: ["is larger than the inbox takes"] });
        throw error;
      });
  };
}
