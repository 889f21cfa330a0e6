import { recordAudit } from "../../audit/actions.ts";
import type { Caller } from "../../http/principal.ts";
import { DISABLED_BY_HAND, type Subscription } from "../model.ts";
import { lockSequence, skipTests } from "../queries/entries.ts";
import * as queries from "../queries/subscriptions.ts";
import { stillThere, wake, type WebhookDeps } from "./deps.ts";

/**
 * Disables the subscription by hand (contract 6.16). Queued events stay where they are and count as held; queued tests are
 * skipped, because nobody waits for their answer any more. The wake has the dispatcher read the state before its next POST.
 */
export async function disableSubscription(
  deps: WebhookDeps,
  { principal, call }: Caller,
  found: Subscription,
): Promise<Subscription> {
  const now = deps.clock.now();
  const { partnerId, id } = found;
  const disabled = await deps.intake.transaction([partnerId], async (tx): Promise<Subscription> => {
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
    await recordAudit(tx, { at: now, action: "WEBHOOK_DISABLED", actor: principal, call, details });
    return { ...current, ...changes };
  });
  await wake(deps, disabled);
  return disabled;
}
