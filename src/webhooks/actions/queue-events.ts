import { decodeTime, ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { ValidParts } from "../../http/fields.ts";
import type { RuleErrors } from "../../http/rules.ts";
import { isUlid } from "../../http/ids.ts";
import { addMs, fromMs, isoInstant, parseInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { BATCH_EVENTS, SUBSCRIBABLE_EVENTS, type EventValue } from "../../outbox/event.ts";
import { windowErrors } from "../decide.ts";
import type { RecoverInput, RedeliverInput } from "../delivery-model.ts";
import type { Subscription } from "../model.ts";
import { appendEntries, hastenRetry, lockSequence } from "../queries/entries.ts";
import { deliveryOf, eventsOfNumbers, lastRoundsOf } from "../queries/events.ts";
import { saveRecovered, stillMissing, undelivered } from "../queries/missed.ts";
import {
  changeSubscription,
  lockSubscription,
  subscriptionById,
} from "../queries/subscriptions.ts";
import { orNotFound, wake, type WebhookDeps } from "./deps.ts";
import type { Caller } from "../../http/principal.ts";

const DAY_MS = 86_400_000;
/** The most events that one recovery queues; another recovery of the same window queues further ones. */
const RECOVER_LIMIT = 10_000;
/**
 * The number of events that one transaction queues. It is small, because all earlier rounds of each event are looked up
 * while the sequence is locked.
 */
const EVENTS_PER_CHUNK = 100;

/** Queues a test of an event, and returns its event id (contract 6.12). */
export async function sendTest(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  event: EventValue,
): Promise<string> {
  const now = deps.clock.now();
  const eventId = await deps.writerPool.transaction([found.partnerId], async (tx) =>
    queueTest(tx, caller, await lockActiveQueue(tx, found), { event, now }),
  );
  wake(deps, found);
  return eventId;
}

/** Queues a test in the caller's transaction, which has locked the sequence, and returns its event id. */
export async function queueTest(
  tx: Tx,
  { principal, requestContext }: Caller,
  { subscription, lastSequence }: LockedQueue,
  { event, now }: { readonly event: EventValue; readonly now: Date },
): Promise<string> {
  const eventId = ulid(now.getTime());
  const { payloadMode } = subscription;
  const entry = { eventId, event, isTest: true, payloadMode, recordedAt: now };
  await appendEntries(tx, subscription, lastSequence, [entry]);
  await recordAudit(tx, {
    at: now,
    action: "WEBHOOK_TESTED",
    actor: principal,
    requestContext,
    details: { subscription_id: subscription.id, event_id: eventId, event },
  });
  return eventId;
}

/**
 * Makes the next batch of a subscription due now (contract 7.14). Later due times count from now. A batch that is due
 * already stays as it is. Throws `not_found` if the subscription has no batches.
 */
export async function sendBatch(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
): Promise<Subscription> {
  const now = deps.clock.now();
  const changed = await deps.writerPool.transaction([found.partnerId], async (tx) => {
    // The 20th permanent failure in a row locks only this row, not the sequence.
    const subscription = orNotFound(await lockSubscription(tx, found.partnerId, found.id));
    const { id, nextBatchAt, state } = subscription;
    if (state !== "active") throw new Problem("subscription_disabled");
    if (nextBatchAt === null) throw new Problem("not_found");
    if (nextBatchAt <= now) return subscription;
    await changeSubscription(tx, id, { nextBatchAt: now });
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_BATCH_REQUESTED",
      actor: principal,
      requestContext,
      details: { subscription_id: id },
    });
    return { ...subscription, nextBatchAt: now };
  });
  wake(deps, found);
  return changed;
}

/**
 * Queues a settled event again at the end of the queue, as a new round of attempts with the same id (contract 6.14).
 * An event that waits for a retry keeps its place and its round; its next attempt is due now.
 */
export async function redeliver(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  eventId: string,
): Promise<void> {
  const now = deps.clock.now();
  await deps.writerPool.transaction([found.partnerId], async (tx) => {
    const { subscription, lastSequence } = await lockActiveQueue(tx, found);
    const last = orNotFound(await deliveryOf(tx, found.id, eventId));
    const isWaiting = last.settledAt === null;
    const ids = { subscription_id: found.id, event_id: eventId };
    if (!isWaiting) {
      if (!isRecorded(last)) throw new Problem("not_found");
      await appendEntries(tx, subscription, lastSequence, [nextRound(last, now)]);
    } else if (!(await hastenRetry(tx, subscription, last.position))) {
      throw new Problem("already_queued");
    }
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_REDELIVERED",
      actor: principal,
      requestContext,
      details: { ...ids, ...(isWaiting && { hastened: true }) },
    });
  });
  wake(deps, found);
}

/**
 * Queues settled events again in the order in which the request names them by id or by number, and returns how many
 * these are. Leaves out unknown events and those that are already queued, so a repeated call queues nothing twice while
 * the events of the first call are queued.
 */
export async function redeliverEvents(
  deps: WebhookDeps,
  { principal, requestContext }: Caller,
  found: Subscription,
  { event_ids: given, sequences = [] }: RedeliverInput,
): Promise<number> {
  const now = deps.clock.now();
  const eventIds = given ?? (await eventsOfNumbers(deps.db, found.id, sequences));
  // The rounds of an event are not older than the event, whose id contains its time. A day is subtracted, because the
  // clocks of processes differ.
  const oldestMs = Math.min(now.getTime(), ...eventIds.map((id) => decodeTime(id))) - DAY_MS;
  const queued = await deps.writerPool.transaction([found.partnerId], async (tx) => {
    const { subscription, lastSequence } = await lockActiveQueue(tx, found);
    const rows = await lastRoundsOf(tx, found.id, eventIds, fromMs(Math.max(0, oldestMs)));
    const byId = new Map(rows.map((row) => [row.eventId, row]));
    const settled = eventIds
      .flatMap((id) => byId.get(id) ?? [])
      .filter((row) => row.settledAt !== null);
    const entries = settled.filter(isRecorded).map((row) => nextRound(row, now));
    if (entries.length === 0) return entries;
    await appendEntries(tx, subscription, lastSequence, entries);
    const ids = entries.map((entry) => entry.eventId);
    await recordAudit(tx, {
      at: now,
      action: "WEBHOOK_REDELIVERED",
      actor: principal,
      requestContext,
      details: { subscription_id: found.id, event_ids: ids.join(" "), queued: ids.length },
    });
    return entries;
  });
  if (queued.length > 0) wake(deps, found);
  return queued.length;
}

type LastRound = NonNullable<Awaited<ReturnType<typeof deliveryOf>>>;

/**
 * Returns whether the body of an event can be composed again. All bodies except those of tests need the history row.
 */
const isRecorded = (last: LastRound): boolean => last.isTest || last.reviewHistoryId !== null;

/** Makes the entry of the next round of an event. */
function nextRound(last: LastRound, now: Date) {
  const { eventId, event, isTest, payloadMode, reviewHistoryId, reviewId, batchJobId } = last;
  const kept = { eventId, event, isTest, payloadMode, reviewHistoryId, reviewId, batchJobId };
  // A test has no row in `review_history`: its body contains the `recordedAt` of the entry, which every round must
  // therefore repeat.
  return { ...kept, round: last.round + 1, recordedAt: isTest ? last.recordedAt : now };
}

/**
 * Checks that the event of the path has a delivery. `redeliver` decides under the lock of the sequence whether the
 * event may be queued again.
 */
export async function findEvent(
  { db }: Pick<WebhookDeps, "db">,
  { id }: Pick<Subscription, "id">,
  eventId: string,
): Promise<string> {
  const delivery = isUlid(eventId) ? await deliveryOf(db, id, eventId) : undefined;
  return orNotFound(delivery).eventId;
}

/** Checks that the window of a recovery is valid. */
export function recoverErrors(
  { clock, config }: Pick<WebhookDeps, "clock" | "config">,
  { since, until }: ValidParts<RecoverInput>,
): RuleErrors {
  const window = { since: parseInstant(since), until: parseInstant(until) };
  return windowErrors(window, { now: clock.now(), retentionMs: config.retentionDays * DAY_MS });
}

/**
 * Queues the undelivered events of a window again (contract 6.15), at most `RECOVER_LIMIT`. Returns for each of them
 * its number at the subscription, or null if it has none.
 *
 * Undelivered events are found without a lock and queued in chunks. The transaction of a chunk blocks the writers of
 * the partner's events for some tens of milliseconds, and checks again that its events are undelivered. So concurrent
 * calls share the work, and after a crash the client can repeat the call. The last chunk saves the progress of the
 * call.
 */
export async function recover(
  deps: WebhookDeps,
  caller: Caller,
  found: Subscription,
  range: RecoveredRange,
): Promise<(number | null)[]> {
  const now = deps.clock.now();
  const window = { since: range.since, until: range.until ?? now };
  const search = searchOf(found, window);
  const { settledSince } = search;
  const missed = await undelivered(deps.db, found, search);
  const queued: (number | null)[] = [];
  for (let from = 0; from === 0 || from < missed.ids.length; from += EVENTS_PER_CHUNK) {
    const numbers = await deps.writerPool.transaction([found.partnerId], async (tx) => {
      const { subscription, lastSequence } = await (from === 0 ? lockActiveQueue : lockQueue)(
        tx,
        found,
      );
      if (from === 0)
        await auditRecovery(tx, caller, { id: found.id, ...window, found: missed.ids.length, now });
      const chunk = missed.ids.slice(from, from + EVENTS_PER_CHUNK);
      const rows = await stillMissing(tx, found.id, chunk, settledSince);
      const entries = rows.map((row) => {
        const { number: _, payloadMode, round, ...kept } = row;
        return {
          ...kept,
          payloadMode: payloadMode ?? subscription.payloadMode,
          round: round + 1,
          recordedAt: now,
        };
      });
      await appendEntries(tx, subscription, lastSequence, entries);
      if (from + EVENTS_PER_CHUNK >= missed.ids.length)
        await saveRecovered(tx, found.id, missed.progress);
      return rows.map(({ number }) => number);
    });
    queued.push(...numbers);
  }
  if (queued.length > 0) wake(deps, found);
  return queued;
}

/**
 * Returns the number of events that `recover` would queue, at most `RECOVER_LIMIT`. It also works for a disabled
 * subscription.
 */
export async function countRecoverable(
  { db, clock }: Pick<WebhookDeps, "db" | "clock">,
  found: Subscription,
  { since, until = clock.now() }: RecoveredRange,
): Promise<number> {
  return (await undelivered(db, found, searchOf(found, { since, until }))).ids.length;
}

interface RecoveredRange {
  readonly since: Date;
  readonly until: Date | undefined;
}

function searchOf(found: Subscription, window: { readonly since: Date; readonly until: Date }) {
  // The search begins at the creation of the subscription, because earlier events were never meant for it.
  const since = window.since < found.createdAt ? found.createdAt : window.since;
  // No event of the window was settled before the window begins, because an event is settled after it was recorded. A
  // day is subtracted, because the clocks of processes differ.
  const settledSince = addMs(since, -DAY_MS);
  const events = wantedEvents(found);
  return { since, until: window.until, settledSince, events, limit: RECOVER_LIMIT };
}

/**
 * Records the recovery in the audit log, in the transaction of its first chunk. `queued` is the number of events that
 * the search found, in all chunks.
 */
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

interface LockedQueue {
  readonly subscription: Subscription;
  readonly lastSequence: number;
}

/** Locks the sequence of a subscription, and reads the subscription under this lock. */
async function lockQueue(tx: Tx, { id, partnerId }: Subscription): Promise<LockedQueue> {
  const lastSequence = orNotFound(await lockSequence(tx, id));
  return { subscription: orNotFound(await subscriptionById(tx, partnerId, id)), lastSequence };
}

/** Locks the queue of an active subscription. Throws `subscription_disabled` for a disabled one. */
async function lockActiveQueue(tx: Tx, found: Subscription): Promise<LockedQueue> {
  const locked = await lockQueue(tx, found);
  if (locked.subscription.state !== "active") throw new Problem("subscription_disabled");
  return locked;
}

/**
 * Returns the events that a subscription gets: those of its filter if it is immediate, and every review-impacting
 * event if it is batch (contract 7.6 and 7.14).
 */
function wantedEvents({ deliveryKind, events }: Subscription): readonly string[] {
  if (deliveryKind === "immediate") return events ?? SUBSCRIBABLE_EVENTS;
  return BATCH_EVENTS;
}
