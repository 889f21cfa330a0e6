import type { Tx } from "../../../db/client.ts";
import { skipQueued } from "../../../db/log.ts";
import { recordAudit } from "../../audit/actions.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import { nextBatchAfter } from "../decide.ts";
import type { Subscription } from "../model.ts";
import { holdHeads, lockSequence, skipBatchEntries } from "../queries/entries.ts";
import { noteDisabling } from "../queries/incident.ts";
import * as queries from "../queries/subscriptions.ts";
import { stillThere, wake, type WebhookDeps } from "./deps.ts";
import { sendTest } from "./queue-events.ts";
import type { Caller } from "../../http/principal.ts";

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
  { principal, call }: Caller,
  found: Subscription,
  { held, test }: { readonly held: Held; readonly test: boolean },
): Promise<{ readonly subscription: Subscription; readonly testEventId: string | null }> {
  const now = deps.clock.now();
  const { partnerId, id } = found;
  const enabled = await deps.intake.transaction([partnerId], async (tx) => {
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
    await recordAudit(tx, { at: now, action: "WEBHOOK_ENABLED", actor: principal, call, details });
    return { ...current, ...changes };
  });
  // It wakes the dispatcher, too; one that finds nothing to send before it does no harm.
  const testEventId = test ? await sendTest(deps, { principal, call }, enabled, TEST_EVENT) : null;
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
