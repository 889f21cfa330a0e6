import { randomInt } from "node:crypto";
import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { violatedIndex } from "../../../db/errors.ts";
import { skipQueued } from "../../../db/log.ts";
import { mailAboutWebhook } from "../../auth/sign-in/security-mails.ts";
import { changesOf } from "../../audit/changes.ts";
import { guardReceivers } from "../../auth/access/guard.ts";
import { recordAudit } from "../../audit/queries.ts";
import { afterCreating, creating } from "../../auth/keyed-requests.ts";
import { type Caller, tenantOf } from "../../http/principal.ts";
import { webhookSecretAssociatedData } from "../../master-key.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { fingerprint, newSecret } from "../../lib/secrets.ts";
import { sealHeaders } from "../../outbox/own-headers.ts";
import { SHARDS } from "../../outbox/schedule.ts";
import {
  changedFields,
  firstBatchAt,
  rescheduledBatchAt,
  settingsOf,
  updatedSettings,
} from "../decide.ts";
import { movedHeadersError } from "../header-rules.ts";
import type {
  NewSubscriptionInput,
  Subscription,
  SubscriptionSettings,
  SubscriptionUpdate,
} from "../model.ts";
import { endChecksOf } from "../queries/checks.ts";
import { dropBatchChunk, skipTests } from "../queries/entries.ts";
import * as queries from "../queries/subscriptions.ts";
import { orNotFound, wake, type WebhookDeps } from "./deps.ts";
import { rejectIfOperators, rejectIfSuspended } from "./state.ts";

const SLOT_INDEX = "webhook_subscriptions_slot";

/** Creates a subscription. The unique index of the slot decides between concurrent requests (contract 6.2). */
export async function createSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  input: NewSubscriptionInput,
): Promise<{ subscription: Subscription; secret: string }> {
  const now = deps.clock.now();
  const secret = newSecret();
  const subscription = newSubscription(tenantOf(principal), settingsOf(input), {
    now,
    secret,
    batchHourMs: deps.config.batchHourMs,
  });
  const { id, partnerId, deliveryKind, headerNames } = subscription;
  const sealed = {
    sealedSecret: deps.box.seal(secret, webhookSecretAssociatedData(partnerId, id)),
    sealedHeaders: sealHeaders(deps.box, subscription, input.headers),
  };
  try {
    await creating(deps.db, { requestContext }, async (tx) => {
      await rejectIfSuspended(tx, partnerId);
      await queries.insertSubscription(tx, { ...subscription, ...sealed });
      const names = headerNames.length > 0 && { header_names: headerNames };
      const details = { subscription_id: id, delivery_kind: deliveryKind, ...names };
      await recordAudit(tx, {
        at: now,
        action: "WEBHOOK_CREATED",
        actor: principal,
        requestContext,
        details,
      });
    });
  } catch (error) {
    throw violatedIndex(error) === SLOT_INDEX ? new Problem("slot_occupied") : error;
  }
  // The wake tells the dispatcher about the first batch. Otherwise the dispatcher would find the batch in its next
  // sweep.
  if (subscription.nextBatchAt !== null)
    afterCreating({ requestContext }, () => wake(deps, subscription));
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
    disabledNote: null,
    pendingTestEventId: null,
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
 * Deletes a subscription. The row of its sequence is deleted first: writers lock it until their commit, so that no
 * entry can be appended after the queued ones are skipped. The skip is one row for all of them, and maintenance
 * deletes the entries later.
 */
export async function deleteSubscription(
  deps: Pick<WebhookDeps, "writerPool" | "clock" | "schedule">,
  { principal, requestContext }: Caller,
  subscription: Subscription,
  reason?: string,
): Promise<void> {
  const now = deps.clock.now();
  await deps.writerPool.transaction([subscription.partnerId], async (tx) => {
    const { id, deliveryKind } = subscription;
    const through = await queries.deleteSequence(tx, id);
    if (through === undefined) throw new Problem("not_found");
    // The state is read under the lock of the sequence, which every request that disables the subscription also takes.
    // If the partner could delete a subscription that an operator has disabled, a new subscription in the free slot
    // would receive the events again.
    rejectIfOperators(
      orNotFound(await queries.subscriptionById(tx, subscription.partnerId, id)),
      principal,
    );
    await endIn(tx, subscription, { through, now });
    const details = { subscription_id: id, delivery_kind: deliveryKind, ...(reason && { reason }) };
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_DELETED",
      actor: principal,
      requestContext,
      details,
    });
  });
  // The wake makes the dispatcher stop sending with the settings that it has already read.
  wake(deps, subscription);
}

/**
 * Skips all queued entries up to the last number of a deleted sequence, ends the checks of the endpoint, and sets the
 * state of the subscription to `deleted`.
 */
export async function endIn(
  tx: Tx,
  { id, deliveryKind }: Pick<Subscription, "id" | "deliveryKind">,
  { through, now }: { readonly through: number; readonly now: Date },
): Promise<void> {
  await skipQueued(tx, { subscriptionId: id, through, reason: "deleted", skippedAt: now });
  if (deliveryKind === "batch") await dropBatchChunk(tx, id);
  await endChecksOf(tx, id, now);
  // `disabledAt` and `disabledReason` keep their values, so that they remain readable (contract 6.3).
  // A trigger removes the headers, also if a process of an earlier version deletes the subscription (migration 0030).
  const deleted = {
    state: "deleted",
    deletedAt: now,
    updatedAt: now,
    pendingTestEventId: null,
  } as const;
  await queries.changeSubscription(tx, id, deleted);
}

/** Applies an update to the locked subscription. An update without a change is not recorded. */
export async function updateSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  update: SubscriptionUpdate,
): Promise<Subscription> {
  const now = deps.clock.now();
  const { before, after } = await deps.db.transaction(async (tx) => {
    const current = orNotFound(await queries.lockSubscription(tx, found.partnerId, found.id));
    // The headers may have been written since the body was checked.
    const headersError = movedHeadersError(current, update);
    if (headersError !== undefined) throw invalid({ headers: [headersError] });
    const settings = updatedSettings(current, update);
    const fields = changedFields(current, settings, update);
    const isMoved = fields.includes("webhook_url");
    guardReceivers(principal, [current.webhookUrl], [settings.webhookUrl]);
    if (principal.needsStepUp && fields.includes("headers")) throw new Problem("step_up_required");
    if (fields.length === 0) return { before: current, after: current };
    const times = { now, hourMs: deps.config.batchHourMs };
    const nextBatchAt = rescheduledBatchAt(current, settings.batchIntervalHours, times);
    // If the URL changes, queued tests are skipped, because the response of the previous endpoint to a pending test
    // says nothing about the new endpoint.
    const { pendingTestEventId: pending } = current;
    if (isMoved && pending !== null) await skipTests(tx, current, now);
    const pendingTestEventId = isMoved ? null : pending;
    const changes = { ...settings, nextBatchAt, pendingTestEventId, updatedAt: now };
    const sealed = update.headers !== undefined && {
      sealedHeaders: sealHeaders(deps.box, current, update.headers),
    };
    await queries.changeSubscription(tx, current.id, { ...changes, ...sealed });
    const named = [...fields, "header_names"];
    const changed = { fields, changes: changesOf(named, current, settings) };
    const details = { subscription_id: current.id, ...changed };
    const by = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...by, action: "WEBHOOK_UPDATED", details });
    const webhook = { ...current, ...changes };
    if (isMoved)
      await mailAboutWebhook(tx, deps, { webhook, change: "url", actor: principal, now });
    return { before: current, after: webhook };
  });
  if (after !== before) wake(deps, after);
  return after;
}
