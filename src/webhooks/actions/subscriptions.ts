import { randomInt } from "node:crypto";
import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { violatesUnique } from "../../../db/errors.ts";
import { skipQueued } from "../../../db/log.ts";
import { recordAudit } from "../../auth/actions/audit.ts";
import { isUlid, type Page } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
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
  type Subscription,
  type SubscriptionSettings,
  type SubscriptionUpdate,
} from "../model.ts";
import {
  dropBatchChunk,
  holdHeads,
  lockSequence,
  skipBatchEntries,
  skipTests,
} from "../queries/entries.ts";
import { noteDisabling } from "../queries/incident.ts";
import * as queries from "../queries/subscriptions.ts";
import { stillThere, tenantOf, wake, type WebhookDeps } from "./deps.ts";
import { sendTest } from "./queue-events.ts";

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
  deps: Pick<WebhookDeps, "writerPool" | "clock" | "schedule">,
  { principal, requestContext }: Caller,
  subscription: Subscription,
): Promise<void> {
  const now = deps.clock.now();
  await deps.writerPool.transaction([subscription.partnerId], async (tx) => {
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
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_DELETED",
      actor: principal,
      requestContext,
      details,
    });
  });
  // The dispatcher stops what it would still send with the settings that it has read.
  await wake(deps, subscription);
}

/** Applies an update to the subscription as it is by then; one that changes nothing leaves no trace. */
export async function updateSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  update: SubscriptionUpdate,
): Promise<Subscription> {
  const now = deps.clock.now();
  const { before, after } = await deps.db.transaction(async (tx) => {
    const current = stillThere(await queries.lockSubscription(tx, found));
    const settings = updatedSettings(current, update);
    const fields = changedFields(current, settings);
    if (fields.length === 0) return { before: current, after: current };
    const times = { now, hourMs: deps.config.batchHourMs };
    const nextBatchAt = rescheduledBatchAt(current, settings.batchIntervalHours, times);
    const changes = { ...settings, nextBatchAt, updatedAt: now };
    await queries.changeSubscription(tx, current.id, changes);
    const details = { subscription_id: current.id, fields };
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_UPDATED",
      actor: principal,
      requestContext,
      details,
    });
    return { before: current, after: { ...current, ...changes } };
  });
  if (after !== before) await wake(deps, after);
  return after;
}

type Held = "deliver" | "skip";

/** A POST may take 15 s: until then its answer is there, or none came. */
const HEADS_WAIT_MS = 20_000;

/**
 * The manual re-enable (contract 6.16). The locks are taken in the order of every other writer: sequence,
 * entries, subscription. What is held stays as it is or is settled; an overdue batch runs as soon as the dispatcher
 * looks.
 */
export async function enableSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  { held, test }: { readonly held: Held; readonly test: boolean },
): Promise<{ readonly subscription: Subscription; readonly testEventId: string | null }> {
  const now = deps.clock.now();
  const { partnerId, id } = found;
  const enabled = await deps.writerPool.transaction([partnerId], async (tx) => {
    const strength = held === "skip" ? "update" : "no key update";
    const through = stillThere(await lockSequence(tx, id, strength));
    const current = stillThere(await queries.subscriptionById(tx, partnerId, id));
    // Nothing if it was disabled since it was read: then it is enabled like any other.
    const updatedAt = await queries.forgetFailures(tx, id, now);
    if (updatedAt !== undefined) return { ...current, ...ENABLED, updatedAt };
    // Only an enable ends the disabled state, and this one holds the sequence: what is settled here is held.
    const skip = { subscriptionId: id, through, skippedAt: now };
    if (held === "skip") await skipQueued(tx, { ...skip, reason: "skipped" });
    else if (test) await holdHeads(tx, current, HEADS_WAIT_MS);
    await noteDisabling(tx, stillThere(await queries.lockSubscription(tx, current)));
    const times = { now, hourMs: deps.config.batchHourMs };
    const batch = held === "skip" ? await skipBatch(tx, current, times) : {};
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
  });
  // It wakes the dispatcher, too; one that finds nothing to send before it does no harm.
  const testEventId = test
    ? await sendTest(deps, { principal, requestContext }, enabled, TEST_EVENT)
    : null;
  if (!test) await wake(deps, enabled);
  return { subscription: enabled, testEventId };
}

const ENABLED = {
  state: "active",
  disabledAt: null,
  disabledReason: null,
  consecutiveFailureCount: 0,
} as const;

/** Contract 7.14: skip moves the cursor to now, and what waited for the next batch is dropped. */
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

/**
 * Disables the subscription by hand (contract 6.16). Queued events stay where they are and count as held; queued tests are
 * skipped, because nobody waits for their answer any more. The wake has the dispatcher read the state before its next POST.
 */
export async function disableSubscription(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
): Promise<Subscription> {
  const now = deps.clock.now();
  const { partnerId, id } = found;
  const disabled = await deps.writerPool.transaction(
    [partnerId],
    async (tx): Promise<Subscription> => {
      stillThere(await lockSequence(tx, id));
      const seen = stillThere(await queries.subscriptionById(tx, partnerId, id));
      if (seen.state === "active") await skipTests(tx, seen, now);
      const current = stillThere(await queries.lockSubscription(tx, found));
      // The 20th failure may have disabled it a moment ago: then it stays as that has left it.
      if (current.state !== "active") return current;
      const changes = {
        state: "disabled",
        disabledAt: now,
        disabledReason: DISABLED_BY_HAND,
        updatedAt: now,
      } as const;
      await queries.changeSubscription(tx, id, changes);
      const details = { subscription_id: id };
      await recordAudit(tx, {
        at: now,
        action: "WEBHOOK_DISABLED",
        actor: principal,
        requestContext,
        details,
      });
      return { ...current, ...changes };
    },
  );
  await wake(deps, disabled);
  return disabled;
}
