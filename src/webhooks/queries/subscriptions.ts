import { and, desc, eq, getTableColumns, lt, ne, sql, type SQL } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { prepared } from "../../../db/session.ts";
import { outboxOffsets, outboxSequences } from "../../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import type { Page } from "../../http/list.ts";
import type { Subscription } from "../model.ts";

const {
  sealedSecret,
  sealedPreviousSecret: _sealed,
  ...shown
} = getTableColumns(webhookSubscriptions);

/** Every column but what is sealed. */
export const SHOWN = shown;

const isThere: SQL = ne(webhookSubscriptions.state, "deleted");

const { id: ulid, partnerId: tenant } = shown;

/** Newest first: the ids are ULIDs. */
export function subscriptionsOf(db: DbOrTx, partnerId: number, { after, limit }: Page) {
  const isBehind = after === undefined ? undefined : lt(ulid, after);
  return db
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(tenant, partnerId), isThere, isBehind))
    .orderBy(desc(ulid))
    .limit(limit + 1);
}

const byUlid = prepared({ ulid, tenant }, (db, given) =>
  db
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(ulid, given.ulid), eq(tenant, given.tenant), isThere)),
);

/** A subscription that is not deleted, within its tenant. */
export async function subscriptionById(db: DbOrTx, partnerId: number, id: string) {
  const [row] = await byUlid(db, { ulid: id, tenant: partnerId });
  return row;
}

/** From here on entries can be appended. */
export async function insertSubscription(tx: Tx, one: Subscription, sealed: string): Promise<void> {
  const subscriptionId = one.id;
  await tx.insert(webhookSubscriptions).values({ ...one, sealedSecret: sealed });
  await tx.insert(outboxSequences).values({ subscriptionId });
  await tx.insert(outboxOffsets).values({ subscriptionId });
}

/**
 * Ends appending: waits for whoever appends now, and nobody can afterwards. Answers the last number given out, or
 * nothing if somebody else has done it.
 */
export async function deleteSequence(tx: Tx, subscriptionId: string): Promise<number | undefined> {
  const [row] = await tx
    .delete(outboxSequences)
    .where(eq(outboxSequences.subscriptionId, subscriptionId))
    .returning({ last: outboxSequences.lastSequence });
  return row?.last;
}

/** Sets these columns; whoever writes settings or the state holds the row by `lockSubscription`. */
export async function changeSubscription(
  tx: Tx,
  id: string,
  values: Partial<typeof webhookSubscriptions.$inferInsert>,
): Promise<void> {
  await tx.update(webhookSubscriptions).set(values).where(eq(ulid, id));
}

/** The subscription as it is now, held until the commit: nobody changes it in between. */
export async function lockSubscription(
  tx: Tx,
  subscription: Pick<Subscription, "id" | "partnerId">,
): Promise<Subscription | undefined> {
  const [row] = await tx
    .select(SHOWN)
    .from(webhookSubscriptions)
    .where(and(eq(ulid, subscription.id), eq(tenant, subscription.partnerId), isThere))
    .for("no key update");
  return row;
}

/** The sealed secret; read it together with what is done with it. */
export async function sealedSecretOf(tx: Tx, id: string): Promise<string | undefined> {
  const [row] = await tx
    .select({ sealed: sealedSecret })
    .from(webhookSubscriptions)
    .where(and(eq(webhookSubscriptions.id, id), isThere));
  return row?.sealed;
}

/** Of an active subscription the counter alone; answers when it was changed last, and nothing for one that is disabled. */
export async function forgetFailures(tx: Tx, id: string, now: Date): Promise<Date | undefined> {
  const { consecutiveFailureCount, updatedAt } = webhookSubscriptions;
  const [row] = await tx
    .update(webhookSubscriptions)
    .set({
      consecutiveFailureCount: 0,
      updatedAt: sql`case when ${consecutiveFailureCount} > 0 then ${now} else ${updatedAt} end`,
    })
    .where(and(eq(webhookSubscriptions.id, id), eq(webhookSubscriptions.state, "active")))
    .returning({ updatedAt });
  return row?.updatedAt;
}
