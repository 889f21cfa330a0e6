import { randomInt } from "node:crypto";
import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/errors.ts";
import { skipQueued } from "../../../db/log.ts";
import { tellOfWebhook } from "../../auth/actions/security-mails.ts";
import { changesOf } from "../../auth/audit-changes.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import { isUlid } from "../../http/list.ts";
import { type Caller, type Principal, tenantOf } from "../../http/principal.ts";
import { webhookSecretAssociatedData } from "../../master-key.ts";
import { Problem } from "../../lib/problem.ts";
import { newSecret } from "../../lib/secrets.ts";
import { fingerprint } from "../../lib/secret-box.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import { SHARDS } from "../../outbox/schedule.ts";
import {
  changedFields,
  firstBatchAt,
  nextBatchAfter,
  rescheduledBatchAt,
  updatedSettings,
} from "../decide.ts";
import {
  DISABLED_BY_HAND,
  DISABLED_BY_OPERATOR,
  type SUSPENDED,
  type Subscription,
  type SubscriptionSettings,
  type SubscriptionUpdate,
} from "../model.ts";
import {
  dropBatchChunk,
  delayHeads,
  lockSequence,
  skipBatchEntries,
  skipTests,
} from "../queries/entries.ts";
import { noteDisabling } from "../queries/alerts.ts";
import * as queries from "../queries/subscriptions.ts";
import { orNotFound, wake, type WebhookDeps } from "./deps.ts";
import { sendTest } from "./queue-events.ts";

const SLOT_INDEX = "webhook_subscriptions_slot";

/**
 * Finds a subscription of the partner. Malformed, unknown, foreign and deleted ids get the same 404 (contract 2.6 and
 * 3.5).
 */
export async function findSubscription(
  { db }: Pick<WebhookDeps, "db">,
  partnerId: number,
  id: string,
): Promise<Subscription> {
  const found = isUlid(id) ? await queries.subscriptionById(db, partnerId, id) : undefined;
  if (found === undefined) throw new Problem("not_found");
  return found;
}

/** Creates a subscription. The unique index of the slot decides between concurrent requests (contract 6.2). */
export async function createSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
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
  const sealed = deps.box.seal(secret, webhookSecretAssociatedData(partnerId, id));
  try {
    await deps.db.transaction(async (tx) => {
      await rejectIfSuspended(tx, partnerId);
      await queries.insertSubscription(tx, subscription, sealed);
      const details = { subscription_id: id, delivery_kind: deliveryKind };
      await recordAudit(tx, {
        at: now,
        action: "WEBHOOK_CREATED",
        actor: principal,
        requestContext,
        details,
      });
    });
  } catch (error) {
    throw violatesUnique(error, SLOT_INDEX) ? new Problem("slot_occupied") : error;
  }
  // The dispatcher learns of the first batch by a wake; otherwise it would find it in the next sweep.
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
    disabledNote: null,
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
    // Read under the lock of the sequence, which a disable takes too. With a new subscription in the free slot the
    // partner would go on receiving what the operator has stopped.
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
  await wake(deps, subscription);
}

/** Skips what is queued up to the last number of a deleted sequence, and marks the subscription as deleted. */
export async function endIn(
  tx: Tx,
  { id, deliveryKind }: Pick<Subscription, "id" | "deliveryKind">,
  { through, now }: { readonly through: number; readonly now: Date },
): Promise<void> {
  await skipQueued(tx, { subscriptionId: id, through, reason: "deleted", skippedAt: now });
  if (deliveryKind === "batch") await dropBatchChunk(tx, id);
  // `disabledAt` and `disabledReason` stay as they are, so that they remain readable (contract 6.3).
  const deleted = { state: "deleted", deletedAt: now, updatedAt: now } as const;
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
    const current = orNotFound(await queries.lockSubscription(tx, found));
    const settings = updatedSettings(current, update);
    const fields = changedFields(current, settings);
    if (fields.length === 0) return { before: current, after: current };
    const times = { now, hourMs: deps.config.batchHourMs };
    const nextBatchAt = rescheduledBatchAt(current, settings.batchIntervalHours, times);
    const changes = { ...settings, nextBatchAt, updatedAt: now };
    await queries.changeSubscription(tx, current.id, changes);
    const changed = { fields, changes: changesOf(fields, current, settings) };
    const details = { subscription_id: current.id, ...changed };
    const by = { at: now, actor: principal, requestContext };
    await recordAudit(tx, { ...by, action: "WEBHOOK_UPDATED", details });
    const webhook = { ...current, ...changes };
    if (fields.includes("webhook_url"))
      await tellOfWebhook(tx, deps, { webhook, change: "url", actor: principal, now });
    return { before: current, after: webhook };
  });
  if (after !== before) await wake(deps, after);
  return after;
}

export type HeldAction = "deliver" | "skip";

/**
 * Delay in milliseconds of held events after a test. A POST takes at most 15 s, so the result of the test is known by
 * then.
 */
const HELD_DELAY_MS = 20_000;

/** Enables a subscription again (contract 6.16). */
export async function enableSubscription(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  { held, test }: { readonly held: HeldAction; readonly test: boolean },
): Promise<{ readonly subscription: Subscription; readonly testEventId: string | null }> {
  const now = deps.clock.now();
  const how = { held, test, now, hourMs: deps.config.batchHourMs };
  const enabled = await deps.writerPool.transaction([found.partnerId], async (tx) => {
    await rejectIfSuspended(tx, found.partnerId);
    return enableIn(tx, caller, found, how);
  });
  // `sendTest` also wakes the dispatcher, so no other wake is needed after a test.
  const testEventId = test ? await sendTest(deps, caller, enabled, TEST_EVENT) : null;
  if (!test) await wake(deps, enabled);
  return { subscription: enabled, testEventId };
}

/**
 * Enables a subscription. Locks are taken in the order that all writers use: sequence, entries, subscription. Held
 * events stay queued, or are skipped if the caller asks for it. An overdue batch is dispatched at the next wake.
 */
export async function enableIn(
  tx: Tx,
  { principal, requestContext }: Caller,
  { id, partnerId }: Subscription,
  how: {
    readonly held: HeldAction;
    readonly test: boolean;
    readonly now: Date;
    readonly hourMs: number;
  },
): Promise<Subscription> {
  const { held, test, now } = how;
  const strength = held === "skip" ? "update" : "no key update";
  const through = orNotFound(await lockSequence(tx, id, strength));
  const current = orNotFound(await queries.subscriptionById(tx, partnerId, id));
  // Undefined if the subscription is disabled. The statement checks it under the row lock, unlike the read above.
  const updatedAt = await queries.forgetFailures(tx, id, now);
  if (updatedAt !== undefined) return { ...current, ...ENABLED, updatedAt };
  rejectIfOperators(current, principal);
  // The subscription cannot become active meanwhile, because only this action enables it, and it holds the lock of
  // the sequence.
  const skip = { subscriptionId: id, through, skippedAt: now };
  if (held === "skip") await skipQueued(tx, { ...skip, reason: "skipped" });
  else if (test) await delayHeads(tx, current, HELD_DELAY_MS);
  await noteDisabling(tx, orNotFound(await queries.lockSubscription(tx, current)));
  const batch = held === "skip" ? await skipBatch(tx, current, how) : {};
  const changes = { ...ENABLED, ...batch, updatedAt: now };
  await queries.changeSubscription(tx, id, changes);
  const details = { subscription_id: id, held, ...(test && { test }) };
  await recordAudit(tx, {
    at: now,
    action: "WEBHOOK_ENABLED",
    actor: principal,
    requestContext,
    details,
  });
  return { ...current, ...changes };
}

/**
 * Throws `company_inactive` if the partner is suspended. The lock makes a suspension wait for this transaction, so
 * that it sees the subscription which this transaction creates or enables.
 */
async function rejectIfSuspended(tx: Tx, partnerId: number): Promise<void> {
  if (!(await queries.isActivePartner(tx, partnerId))) throw new Problem("company_inactive");
}

/** Throws `disabled_by_operator` if an operator disabled the subscription and the caller is none. */
function rejectIfOperators(
  { disabledReason }: Pick<Subscription, "disabledReason">,
  { companyType }: Pick<Principal, "companyType">,
): void {
  if (disabledReason === DISABLED_BY_OPERATOR && companyType !== "platform")
    throw new Problem("disabled_by_operator");
}

const ENABLED = {
  state: "active",
  disabledAt: null,
  disabledReason: null,
  disabledNote: null,
  consecutiveFailureCount: 0,
} as const;

/** Drops the events that wait for the next batch, and moves the last dispatch to now (contract 7.14). */
async function skipBatch(
  tx: Tx,
  current: Subscription,
  times: { readonly now: Date; readonly hourMs: number },
): Promise<Partial<Subscription>> {
  const nextBatchAt = nextBatchAfter(current, times);
  if (nextBatchAt === null) return {};
  await skipBatchEntries(tx, current.id);
  return { lastBatchDispatchedAt: times.now, nextBatchAt };
}

type Disabling =
  | {
      readonly disabledReason: typeof DISABLED_BY_HAND | typeof SUSPENDED;
      readonly disabledNote: null;
    }
  | { readonly disabledReason: typeof DISABLED_BY_OPERATOR; readonly disabledNote: string };

export const BY_HAND: Disabling = { disabledReason: DISABLED_BY_HAND, disabledNote: null };

/** Disables a subscription on request (contract 6.16). */
export async function disableSubscription(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  by: Disabling,
): Promise<Subscription> {
  const now = deps.clock.now();
  const disabled = await deps.writerPool.transaction([found.partnerId], (tx) =>
    disableIn(tx, caller, found, { by, now }),
  );
  // The wake makes the dispatcher read the state before its next POST.
  await wake(deps, disabled);
  return disabled;
}

/**
 * Disables a subscription. Queued events stay queued and count as held. Queued tests are skipped, because nobody waits
 * for their results any more.
 */
export async function disableIn(
  tx: Tx,
  { principal, requestContext }: Caller,
  found: Subscription,
  { by, now }: { readonly by: Disabling; readonly now: Date },
): Promise<Subscription> {
  const { id, partnerId } = found;
  orNotFound(await lockSequence(tx, id));
  const seen = orNotFound(await queries.subscriptionById(tx, partnerId, id));
  if (seen.state === "active") await skipTests(tx, seen, now);
  const current = orNotFound(await queries.lockSubscription(tx, found));
  // The 20th failure may have disabled the subscription a moment ago. Its time is then kept, and its reason too,
  // unless an operator gives another.
  if (current.state !== "active" && by.disabledNote === null) return current;
  await noteDisabling(tx, current);
  const disabledAt = current.disabledAt ?? now;
  const changes = { ...by, state: "disabled", disabledAt, updatedAt: now } as const;
  await queries.changeSubscription(tx, id, changes);
  const { disabledNote: reason } = by;
  const details = { subscription_id: id, ...(reason !== null && { reason }) };
  const audit = { at: now, actor: principal, requestContext };
  await recordAudit(tx, { ...audit, action: "WEBHOOK_DISABLED", details });
  return { ...current, ...changes };
}
