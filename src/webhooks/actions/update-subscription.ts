import { recordAudit } from "../../audit/actions.ts";
import { changedFields, rescheduledBatchAt, updatedSettings } from "../decide.ts";
import type { Subscription, SubscriptionUpdate } from "../model.ts";
import * as queries from "../queries/subscriptions.ts";
import { stillThere, wake, type WebhookDeps } from "./deps.ts";
import type { Caller } from "../../http/principal.ts";

/** Applies an update to the subscription as it is by then; one that changes nothing leaves no trace. */
export async function updateSubscription(
  deps: WebhookDeps,
  { principal, call }: Caller,
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
    await recordAudit(tx, { at: now, action: "WEBHOOK_UPDATED", actor: principal, call, details });
    return { before: current, after: { ...current, ...changes } };
  });
  if (after !== before) await wake(deps, after);
  return after;
}
