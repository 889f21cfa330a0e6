import { randomInt } from "node:crypto";

import { ulid } from "ulid";

import { violatesUnique } from "../../../db/errors.ts";
import { skipQueued } from "../../../db/log.ts";
import { recordAudit } from "../../audit/actions.ts";
import { isUlid, type Page } from "../../http/list.ts";
import { Problem } from "../../lib/problem.ts";
import { newSecret } from "../../lib/random-secret.ts";
import { fingerprint } from "../../lib/secret-box.ts";
import { SHARDS } from "../../outbox/schedule.ts";
import { webhookSecretContext } from "../../keys/sealed-columns.ts";
import { firstBatchAt } from "../decide.ts";
import type { Subscription, SubscriptionSettings } from "../model.ts";
import { dropBatchChunk } from "../queries/entries.ts";
import * as queries from "../queries/subscriptions.ts";
import { tenantOf, wake, type WebhookDeps } from "./deps.ts";
import type { Caller } from "../../http/principal.ts";

const SLOT_INDEX = "webhook_subscriptions_slot";

export function listSubscriptions(
  { db }: Pick<WebhookDeps, "db">,
  partnerId: number,
  page: Page,
): Promise<Subscription[]> {
  return queries.subscriptionsOf(db, partnerId, page);
}

/** Malformed, missing, foreign and deleted ids are one and the same 404 (contract 2.6 and 3.5). */
export async function findSubscription(
  { db }: Pick<WebhookDeps, "db">,
  partnerId: number,
  id: string,
): Promise<Subscription> {
  const found = isUlid(id) ? await queries.subscriptionById(db, partnerId, id) : undefined;
  if (found === undefined) throw new Problem("not_found");
  return found;
}

/** The unique index of the slot decides between parallel creates (contract 6.2). */
export async function createSubscription(
  deps: WebhookDeps,
  { principal, call }: Caller,
  settings: SubscriptionSettings,
): Promise<{ subscription: Subscription; secret: string }> {
  const now = deps.clock.now();
  const secret = newSecret();
  const subscription = newSubscription(tenantOf(principal), settings, {
    now,
    secret,
    batchHourMs: deps.config.batchHourMs,
  });
  const { id, partnerId, deliveryKind } = subscription;
  const sealed = deps.box.seal(secret, webhookSecretContext(partnerId, id));
  try {
    await deps.db.transaction(async (tx) => {
      await queries.insertSubscription(tx, subscription, sealed);
      const details = { subscription_id: id, delivery_kind: deliveryKind };
      await recordAudit(tx, {
        at: now,
        action: "WEBHOOK_CREATED",
        actor: principal,
        call,
        details,
      });
    });
  } catch (error) {
    throw violatesUnique(error, SLOT_INDEX) ? new Problem("slot_occupied") : error;
  }
  // Without it, the first batch would wait for the sweep to find it.
  if (subscription.nextBatchAt !== null) await wake(deps, subscription);
  return { subscription, secret };
}

function newSubscription(
  partnerId: number,
  settings: SubscriptionSettings,
  { now, secret, batchHourMs }: { now: Date; secret: string; batchHourMs: number },
): Subscription {
  return {
    ...settings,
    id: ulid(now.getTime()),
    partnerId,
    shard: randomInt(SHARDS),
    state: "active",
    consecutiveFailureCount: 0,
    disabledAt: null,
    disabledReason: null,
    lastBatchDispatchedAt: null,
    nextBatchAt: firstBatchAt(settings, now, batchHourMs),
    secretFingerprint: fingerprint(secret),
    previousSecretExpiresAt: null,
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
  };
}

/**
 * The sequence goes first: whoever appends holds it until their commit, so that after it no entry can come that
 * would be left behind when the queued ones are settled. Many of them are only marked here, and settled after the answer.
 */
export async function deleteSubscription(
  deps: Pick<WebhookDeps, "intake" | "clock" | "schedule">,
  { principal, call }: Caller,
  subscription: Subscription,
): Promise<void> {
  const now = deps.clock.now();
  await deps.intake.transaction([subscription.partnerId], async (tx) => {
    const { id, deliveryKind } = subscription;
    const through = await queries.deleteSequence(tx, id);
    if (through === undefined) throw new Problem("not_found");
    const reason = "deleted" as const;
    await skipQueued(tx, { subscriptionId: id, through, reason, skippedAt: now });
    if (deliveryKind === "batch") await dropBatchChunk(tx, id);
    // Why it was disabled before stays readable (contract 6.3).
    const deleted = { state: "deleted", deletedAt: now, updatedAt: now } as const;
    await queries.changeSubscription(tx, id, deleted);
    const details = { subscription_id: id, delivery_kind: deliveryKind };
    await recordAudit(tx, { at: now, action: "WEBHOOK_DELETED", actor: principal, call, details });
  });
  // The dispatcher stops what it would still send with the settings that it has read.
  await wake(deps, subscription);
}
