import type { Tx } from "../../../db/client.ts";
import { skipQueued } from "../../../db/log.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import { nextBatchAfter } from "../decide.ts";
import {
  DISABLED_BY_HAND,
  DISABLED_BY_OPERATOR,
  type SUSPENDED,
  type Subscription,
} from "../model.ts";
import { noteDisabling } from "../queries/incidents.ts";
import { hastenFirstRetry, lockSequence, skipBatchEntries, skipTests } from "../queries/entries.ts";
import * as queries from "../queries/subscriptions.ts";
import { orNotFound, wake, type WebhookDeps } from "./deps.ts";
import { queueTest } from "./queue-events.ts";

export type HeldAction = "deliver" | "skip";

interface EnablingOptions {
  readonly held: HeldAction;
  /** Whether a test event is sent first. The subscription then stays disabled until the test is answered 2xx. */
  readonly test: boolean;
  readonly now: Date;
  readonly hourMs: number;
}

interface EnabledResult {
  readonly subscription: Subscription;
  readonly testEventId: string | null;
}

/** Enables a subscription again. With `test`, the response to a test decides whether it is enabled (contract 6.16). */
export async function enableSubscription(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  options: Pick<EnablingOptions, "held" | "test">,
): Promise<EnabledResult> {
  const enabling = { ...options, now: deps.clock.now(), hourMs: deps.config.batchHourMs };
  const enabled = await deps.writerPool.transaction([found.partnerId], async (tx) => {
    await rejectIfSuspended(tx, found.partnerId);
    return enableIn(tx, caller, found, enabling);
  });
  wake(deps, found);
  return enabled;
}

/**
 * Enables a subscription. Locks are taken in the order that all writers use: sequence, entries, subscription. Held
 * events stay queued and the first retry among them is due at once (contract 7.9), or they are skipped if the caller
 * asks for it. The dispatcher starts an overdue batch at the next wake.
 *
 * With a test, the subscription stays disabled until the transaction that records a 2xx for the test enables it
 * (dispatcher/store/attempt-queries.ts). So its events stay held even if processes stop before the test is answered.
 */
export async function enableIn(
  tx: Tx,
  caller: Caller,
  { id, partnerId }: Subscription,
  { held, test, now, hourMs }: EnablingOptions,
): Promise<EnabledResult> {
  const { principal, requestContext } = caller;
  const strength = held === "skip" ? "update" : "no key update";
  const through = orNotFound(await lockSequence(tx, id, strength));
  const seen = orNotFound(await queries.subscriptionById(tx, partnerId, id));
  const queue = { subscription: seen, lastSequence: through };
  const sendTest = () => queueTest(tx, caller, queue, { event: TEST_EVENT, now });
  // `forgetFailures` returns undefined if the subscription is disabled. It checks this under the row lock, which
  // `subscriptionById` does not take.
  const updatedAt = await queries.forgetFailures(tx, id, now);
  if (updatedAt !== undefined)
    return {
      subscription: { ...seen, ...ENABLED_COLUMNS, updatedAt },
      testEventId: test ? await sendTest() : null,
    };
  rejectIfOperators(seen, principal);
  const skip = { subscriptionId: id, through, skippedAt: now };
  if (held === "skip") await skipQueued(tx, { ...skip, reason: "skipped" });
  else await hastenFirstRetry(tx, seen);
  // Queued tests are skipped, because the pending test of an earlier call no longer decides whether the subscription is
  // enabled.
  if (seen.pendingTestEventId !== null) await skipTests(tx, seen, now);
  const testEventId = test ? await sendTest() : null;
  const current = orNotFound(await queries.lockSubscription(tx, seen.partnerId, seen.id));
  await noteDisabling(tx, current);
  const batch = held === "skip" ? await skipBatch(tx, current, { now, hourMs }) : {};
  // An earlier test may have enabled the subscription before its row was locked here. Then this test has nothing left
  // to enable.
  const waitsForTest = test && current.state === "disabled";
  const state = waitsForTest ? { pendingTestEventId: testEventId } : ENABLED_COLUMNS;
  const changes = { ...state, ...batch, updatedAt: now };
  await queries.changeSubscription(tx, id, changes);
  const details = { subscription_id: id, held, ...(test && { test }) };
  await recordAudit(tx, {
    at: now,
    action: "WEBHOOK_ENABLED",
    actor: principal,
    requestContext,
    details,
  });
  return { subscription: { ...current, ...changes }, testEventId };
}

/**
 * Throws `company_inactive` if the partner is suspended. The lock makes a suspension wait for this transaction, so that
 * the suspension sees the subscription that this transaction creates or enables.
 */
export async function rejectIfSuspended(tx: Tx, partnerId: number): Promise<void> {
  if (!(await queries.isActivePartner(tx, partnerId))) throw new Problem("company_inactive");
}

/** Throws `disabled_by_operator` if an operator disabled the subscription and the caller is not an operator. */
export function rejectIfOperators(
  { disabledReason }: Pick<Subscription, "disabledReason">,
  { companyType }: Pick<Principal, "companyType">,
): void {
  if (disabledReason === DISABLED_BY_OPERATOR && companyType !== "platform")
    throw new Problem("disabled_by_operator");
}

const ENABLED_COLUMNS = {
  state: "active",
  disabledAt: null,
  disabledReason: null,
  disabledNote: null,
  pendingTestEventId: null,
  consecutiveFailureCount: 0,
} as const;

/** Drops the events that wait for the next batch, and sets the time of the last batch to now (contract 7.14). */
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

type DisablingReason =
  | {
      readonly disabledReason: typeof DISABLED_BY_HAND | typeof SUSPENDED;
      readonly disabledNote: null;
    }
  | { readonly disabledReason: typeof DISABLED_BY_OPERATOR; readonly disabledNote: string };

export const BY_HAND: DisablingReason = { disabledReason: DISABLED_BY_HAND, disabledNote: null };

/** Disables a subscription on request (contract 6.16). */
export async function disableSubscription(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  by: DisablingReason,
): Promise<Subscription> {
  const now = deps.clock.now();
  const disabled = await deps.writerPool.transaction([found.partnerId], (tx) =>
    disableIn(tx, caller, found, { by, now }),
  );
  // The wake makes the dispatcher read the state before its next POST.
  wake(deps, disabled);
  return disabled;
}

/**
 * Disables a subscription, or ends the wait for a pending test. Queued events stay queued and count as held. Queued
 * tests are skipped, because nobody waits for their results any more.
 */
export async function disableIn(
  tx: Tx,
  { principal, requestContext }: Caller,
  found: Subscription,
  { by, now }: { readonly by: DisablingReason; readonly now: Date },
): Promise<Subscription> {
  const { id, partnerId } = found;
  orNotFound(await lockSequence(tx, id));
  const seen = orNotFound(await queries.subscriptionById(tx, partnerId, id));
  const isPending = seen.pendingTestEventId !== null;
  if (seen.state === "active" || isPending) await skipTests(tx, seen, now);
  const current = orNotFound(await queries.lockSubscription(tx, found.partnerId, found.id));
  // The 20th permanent failure may have disabled the subscription before this request. Then the time and the reason of
  // that disabling are kept; only an operator, who gives a reason, replaces the reason.
  const isKept = current.state !== "active" && by.disabledNote === null;
  if (isKept && !isPending) return current;
  await noteDisabling(tx, current);
  const changes = {
    ...(!isKept && by),
    state: "disabled",
    disabledAt: current.disabledAt ?? now,
    pendingTestEventId: null,
    updatedAt: now,
  } as const;
  await queries.changeSubscription(tx, id, changes);
  const { disabledNote: reason } = by;
  const details = { subscription_id: id, ...(reason !== null && { reason }) };
  const audit = { at: now, actor: principal, requestContext };
  await recordAudit(tx, { ...audit, action: "WEBHOOK_DISABLED", details });
  return { ...current, ...changes };
}
