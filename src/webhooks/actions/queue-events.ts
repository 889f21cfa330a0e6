import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../auth/actions/audit.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { isUlid } from "../../http/list.ts";
import { addMs, isoInstant, parseInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { BATCH_EVENTS, SUBSCRIBABLE_EVENTS, type EventValue } from "../../outbox/event.ts";
import { windowErrors } from "../decide.ts";
import type { RecoverAsked } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";
import { appendEntries, lockSequence } from "../queries/entries.ts";
import { deliveryOf } from "../queries/events.ts";
import { saveRecovered, stillMissing, undelivered } from "../queries/missed.ts";
import { subscriptionById } from "../queries/subscriptions.ts";
import { stillThere, wake, type WebhookDeps } from "./deps.ts";
import type { Caller } from "../../http/principal.ts";

const DAY_MS = 86_400_000;
/** What one call looks for in the history and answers; the next call takes the rest. */
export const RECOVER_LIMIT = 10_000;
/** Events queued while the sequence is held: each takes a look through all rounds that it had. */
const CHUNK = 100;

/** Queues a test of an event; answers its event id (contract 6.12). */
export async function sendTest(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  event: EventValue,
): Promise<string> {
  const now = deps.clock.now();
  const eventId = ulid(now.getTime());
  await deps.writerPool.transaction([found.partnerId], async (tx) => {
    const { subscription, lastSequence } = await holdActive(tx, found);
    const { payloadMode } = subscription;
    const entry = { eventId, event, isTest: true, payloadMode, recordedAt: now };
    await appendEntries(tx, subscription, lastSequence, [entry]);
    const details = { subscription_id: found.id, event_id: eventId, event };
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_TESTED",
      actor: principal,
      requestContext,
      details,
    });
  });
  await wake(deps, found);
  return eventId;
}

/** Queues a settled event again at the tail, as a new round of attempts under its old id (contract 6.14). */
export async function redeliver(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  eventId: string,
): Promise<void> {
  const now = deps.clock.now();
  await deps.writerPool.transaction([found.partnerId], async (tx) => {
    const { subscription, lastSequence } = await holdActive(tx, found);
    const last = stillThere(await deliveryOf(tx, found.id, eventId));
    if (last.settledAt === null) throw new Problem("already_queued");
    // Without its row of the history the event cannot be composed again.
    if (!last.isTest && last.reviewHistoryId === null) throw new Problem("not_found");
    const { event, isTest, payloadMode, reviewHistoryId, reviewId, batchJobId } = last;
    // The body of a test says when it was recorded; that of every other event stands in the history.
    const recordedAt = isTest ? last.recordedAt : now;
    const kept = { eventId, event, isTest, payloadMode, reviewHistoryId, reviewId, batchJobId };
    const entry = { ...kept, round: last.round + 1, recordedAt };
    await appendEntries(tx, subscription, lastSequence, [entry]);
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_REDELIVERED",
      actor: principal,
      requestContext,
      details: { subscription_id: found.id, event_id: eventId },
    });
  });
  await wake(deps, found);
}

/** Whether the route's event exists at all; the rest is decided under the lock. */
export async function findEvent(
  { db }: Pick<WebhookDeps, "db">,
  { id }: Pick<Subscription, "id">,
  eventId: string,
): Promise<string> {
  const delivery = isUlid(eventId) ? await deliveryOf(db, id, eventId) : undefined;
  return stillThere(delivery).eventId;
}

/** What is wrong with the fields that ask for a window. */
export function recoverErrors(
  { clock, config }: Pick<WebhookDeps, "clock" | "config">,
  { since, until }: ValidParts<RecoverAsked>,
): RuleErrors {
  const window = { since: parseInstant(since), until: parseInstant(until) };
  return windowErrors(window, { now: clock.now(), retentionMs: config.retentionDays * DAY_MS });
}

/**
 * Queues what a window lost (contract 6.15); answers how many events, `RECOVER_LIMIT` at most. What is missing is looked
 * up without a lock, and queued in chunks: each holds back the writers of the partner's events for some tens of
 * milliseconds, and looks again at what is missing. So two calls at once share the work, and a call that a crash ended
 * is made again by its caller, who had no answer. The last chunk notes how far the call has come.
 */
export async function recover(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  asked: { readonly since: Date; readonly until: Date | undefined },
): Promise<number> {
  const now = deps.clock.now();
  const window = { since: asked.since, until: asked.until ?? now };
  // What happened before the subscription existed was never for it.
  const since = window.since < found.createdAt ? found.createdAt : window.since;
  // The clocks of two processes may differ, though not by a day.
  const settledSince = addMs(since, -DAY_MS);
  const looked = { since, until: window.until, settledSince, events: wantedEvents(found) };
  const missed = await undelivered(deps.db, found, { ...looked, limit: RECOVER_LIMIT });
  let queued = 0;
  for (let from = 0; from === 0 || from < missed.ids.length; from += CHUNK)
    queued += await deps.writerPool.transaction([found.partnerId], async (tx) => {
      const { subscription, lastSequence } = await (from === 0 ? holdActive : hold)(tx, found);
      if (from === 0)
        await auditRecovery(tx, caller, { id: found.id, ...window, found: missed.ids.length, now });
      const chunk = missed.ids.slice(from, from + CHUNK);
      const rows = await stillMissing(tx, found.id, chunk, settledSince);
      const entries = rows.map(({ payloadMode, round, ...row }) => ({
        ...row,
        payloadMode: payloadMode ?? subscription.payloadMode,
        round: round + 1,
        recordedAt: now,
      }));
      await appendEntries(tx, subscription, lastSequence, entries);
      if (from + CHUNK >= missed.ids.length) await saveRecovered(tx, found.id, looked, missed);
      return entries.length;
    });
  if (queued > 0) await wake(deps, found);
  return queued;
}

/** With the first chunk; what the others queue is counted already. */
async function auditRecovery(
  tx: Tx,
  { principal, requestContext }: Caller,
  one: { id: string; since: Date; until: Date; found: number; now: Date },
): Promise<void> {
  const details = {
    subscription_id: one.id,
    since: isoInstant(one.since),
    until: isoInstant(one.until),
    queued: one.found,
  };
  await recordAudit(tx, {
    at: one.now,
    action: "WEBHOOK_RECOVERED",
    actor: principal,
    requestContext,
    details,
  });
}

interface Held {
  readonly subscription: Subscription;
  readonly lastSequence: number;
}

/** The sequence, and the subscription as it is while nobody else appends. */
async function hold(tx: Tx, { id, partnerId }: Subscription): Promise<Held> {
  const lastSequence = stillThere(await lockSequence(tx, id));
  return { subscription: stillThere(await subscriptionById(tx, partnerId, id)), lastSequence };
}

/** The same; 409 if it is disabled. */
async function holdActive(tx: Tx, found: Subscription): Promise<Held> {
  const held = await hold(tx, found);
  if (held.subscription.state !== "active") throw new Problem("subscription_disabled");
  return held;
}

/** What matches: the filter of immediate; every review-impacting event for batch (contract 7.6 and 7.14). */
function wantedEvents({ deliveryKind, events }: Subscription): readonly string[] {
  if (deliveryKind === "immediate") return events ?? SUBSCRIBABLE_EVENTS;
  return BATCH_EVENTS;
}
