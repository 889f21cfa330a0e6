import { addMs } from "../../src/lib/clock.ts";
import type { Decision } from "./decide.ts";
import type { ActorEvent, Effect, Entry, Loaded, Subscription } from "./event.ts";
import { complete, markInDoubt, IN_DOUBT_LOAD, type InDoubtAttempts } from "./in-doubt.ts";
import { fills, isOutdated, planLoad } from "./load.ts";
import {
  isForeign,
  isFresh,
  MAX_TESTS,
  PARALLEL_REVIEWS,
  roomForFailures,
  type Actor,
} from "./state.ts";
import {
  countUnrecorded,
  hasWork,
  isBlocked,
  laneName,
  MAIN,
  MAX_UNRECORDED,
  applyDecision,
  Lane,
} from "./lane.ts";

/*
 * Each subscription has one actor: a state machine without I/O. `step` takes an actor event and returns the effects to
 * perform, both for the dispatcher and for the simulation. PostgreSQL stores all state that must survive, so an actor
 * with nothing to do is dropped, and the next wake makes a new one.
 */

/** The most test events of a subscription that are under way at the same time. */
const PARALLEL_TESTS = 4;

/**
 * A step back of the clock by more than this many milliseconds counts as a clock that was set back. A smaller step is
 * the correction by a new reading of PostgreSQL's clock.
 */
const SET_BACK_MS = 5_000;
/**
 * The longest wait in milliseconds for a due time. After it the lane is read again, because maintenance may have made
 * the due time earlier that was written while the clock of PostgreSQL was ahead (due-time-queries.ts).
 */
const LONGEST_WAIT_MS = 120_000;

/** Applies one actor event to the actor and returns the effects to perform. */
export function step(actor: Actor, event: ActorEvent, now: Date): Effect[] {
  // If the clock was set back, the ends of all waits are wrong, so the queues and waits are discarded. PostgreSQL has
  // the right due times.
  if (actor.steppedMs - now.getTime() > SET_BACK_MS) forget(actor);
  actor.steppedMs = now.getTime();
  switch (event.kind) {
    case "woken":
      actor.wanted = true;
      actor.plannedFor = undefined;
      break;
    case "has_room":
      break;
    case "rechecked":
      actor.rechecking = false;
      break;
    case "loaded":
      onLoaded(actor, event.loaded, now);
      break;
    case "unsent":
      onUnsent(actor, event);
      break;
    case "postponed":
      onPostponed(actor, event.lane, event.until);
      break;
    case "answered":
      onAnswered(actor, event, now);
      break;
    case "committed":
      onCommitted(actor, event);
      break;
    case "batched":
      actor.batching = false;
      actor.wanted = true;
      // Clears the due time that has passed; the load that follows shows when the next batch is due.
      if (actor.subscription) actor.subscription = { ...actor.subscription, nextBatchAt: null };
      break;
    case "stopped":
      actor.stopping = true;
      forget(actor);
      break;
  }
  return nextEffects(actor, now);
}

function onLoaded(actor: Actor, { request, found }: Loaded, now: Date): void {
  actor.loading = false;
  if (found === undefined) return deactivate(actor);
  const { inDoubt } = actor;
  if (inDoubt) {
    inDoubt.ordering ??= found.subscription.ordering;
    inDoubt.lastSequence ??= found.lastSequence;
  }
  const before = actor.subscription ?? found.subscription;
  actor.subscription = found.subscription;
  actor.loadedAt = now;
  actor.nextDueAt = found.nextDueAt;
  if (actor.readsFailures) actor.failures = found.subscription.consecutiveFailureCount;
  // Reads the entries again if an account was deactivated, so that queued entries are held, or was activated, so that
  // earlier entries are due again.
  if (before.inactiveAccounts !== found.subscription.inactiveAccounts) forget(actor);
  // Discards the queues if a test has become pending, because it holds all other entries, or is not pending any more.
  if (before.pendingTestEventId !== found.subscription.pendingTestEventId) forget(actor);
  // Discards the queues if data was erased since the last load, because queued entries may still contain it.
  if (before.erasures !== found.subscription.erasures) forget(actor);
  // Reads the entries again if requests begin to carry numbers, because queued entries have none.
  if (before.settledLimit === null && found.subscription.settledLimit !== null) forget(actor);
  // If the ordering, which determines the lanes, has changed since the load was requested, all entries are read again
  // after those under way have ended.
  const byReview = found.subscription.ordering === "review";
  const isMisread =
    request.limit > 0 && (byReview ? request.after > 0 : request.exceptReviews.length > 0);
  if (isMisread || before.ordering !== found.subscription.ordering) forget(actor);
  if (actor.stopping) return;
  if (isOutdated(request, actor)) {
    actor.wanted = true;
    return;
  }
  if (request.limit > 0) actor.more = fills(request, found.entries);
  // If the load was to bring entries but had no room for any, they have to be read later.
  else if (actor.filling) actor.more = true;
  const due = found.tests.filter(({ dueAt }) => dueAt === null || dueAt <= now);
  actor.moreTests = due.length >= MAX_TESTS;
  for (const entry of [...found.entries, ...found.tests])
    enqueue(actor, found.subscription.ordering, entry);
  if (inDoubt) takeEnd(inDoubt, actor, { request, found });
}

/** Notes whether this load was the last one that can show entries which a crashed process may have sent. */
function takeEnd(inDoubt: InDoubtAttempts, { more, moreTests }: Actor, { request, found }: Loaded) {
  if (request.limit === 0 || found === undefined || moreTests) return;
  // A load while a test is pending is not the last one, because all other entries are held and it does not show them.
  if (found.subscription.pendingTestEventId !== null) return;
  const last = found.entries.at(-1)?.sequence ?? 0;
  const isAll = !more || last >= (inDoubt.lastSequence ?? 0);
  if (inDoubt.ordering === "subscription") {
    if (isAll || found.entries.length >= IN_DOUBT_LOAD) complete(inDoubt);
    return;
  }
  const isByReview = found.subscription.ordering === "review";
  const waits =
    found.nextDueAt !== undefined || found.entries.some(({ isFirstOnly }) => isFirstOnly);
  // If a review waits or has waited for a retry, loads show only its first entry, so they do not show all entries yet.
  if (isAll && request.exceptReviews.length === 0 && !(isByReview && waits)) complete(inDoubt);
}

function enqueue(actor: Actor, ordering: Subscription["ordering"], entry: Entry): void {
  const name = laneName(ordering, entry);
  let lane = actor.lanes.get(name);
  if (lane === undefined) actor.lanes.set(name, (lane = new Lane(name, entry)));
  // A test that has a lane is not queued again: loads show a test until its attempt record is committed.
  else if (lane.kind === "test") return;
  if (lane.waitingUntil !== undefined) return;
  if (lane.kind === MAIN) actor.cursor = Math.max(actor.cursor, entry.sequence);
  if (actor.inDoubt) markInDoubt(actor.inDoubt, entry);
  if (lane.kind === "review" && entry.isFirstOnly) lane.unseen = true;
  lane.push(entry);
}

function onUnsent(actor: Actor, event: ActorEvent & { kind: "unsent" }): void {
  const lane = actor.lanes.get(event.lane);
  lane?.end();
  forget(actor);
  // Drops the settings of a subscription that is not active any more. The load that follows shows whether it was
  // enabled again.
  if (event.isEnded) actor.subscription = undefined;
}

/**
 * Makes a lane wait after a failure on our side. PostgreSQL does not know this wait, so the actor stays in memory:
 * otherwise a sweep would make it try again sooner.
 */
function onPostponed(actor: Actor, name: string, until: Date): void {
  const lane = actor.lanes.get(name);
  if (lane === undefined) return;
  lane.end();
  wait(actor, lane, until);
  lane.isPostponed = true;
  actor.postponed += 1;
}

function onAnswered(actor: Actor, event: ActorEvent & { kind: "answered" }, now: Date): void {
  actor.postponed = 0;
  const lane = actor.lanes.get(event.lane);
  if (lane === undefined) return;
  applyDecision(lane, event.decision, now);
  countFailure(actor, event.decision);
  actor.inDoubt?.marked.delete(lane.sent);
}

/**
 * Counts the outcome of a delivery before its commit. The commit applies the same rule to the outcomes in the same
 * order.
 */
function countFailure(actor: Actor, { kind }: Decision): void {
  actor.readsFailures = false;
  if (kind === "delivered") actor.failures = 0;
  if (kind === "failed") actor.failures += 1;
}

function onCommitted(actor: Actor, event: ActorEvent & { kind: "committed" }): void {
  const lane = actor.lanes.get(event.lane);
  if (lane === undefined) return;
  lane.uncommitted -= 1;
  // Loads again if the last load may have left out a test, because there is room for it now.
  if (lane.kind === "test" && actor.moreTests) actor.wanted = true;
  if (event.decision.kind !== "delivered") lane.halted = false;
  if (event.decision.kind === "retry" && lane.retryAt) awaitRetry(actor, lane, lane.retryAt);
  if (event.decision.kind === "interrupted") forget(actor);
  // Loads again if a test was pending, because its committed attempt record has decided whether the subscription is
  // active.
  if (actor.subscription?.pendingTestEventId != null) actor.wanted = true;
  if (!event.active) deactivate(actor);
}

/**
 * Notes that the subscription is disabled or deleted, and discards the queues, because their entries are held or
 * deleted.
 */
function deactivate(actor: Actor): void {
  actor.subscription = undefined;
  actor.more = false;
  forget(actor);
}

/**
 * Makes a lane wait for a retry. A review needs no lane for that, because loads leave it out until the retry is due.
 */
function awaitRetry(actor: Actor, lane: Lane, until: Date): void {
  if (lane.kind !== "review") return wait(actor, lane, until);
  lane.clear();
  if (actor.nextDueAt === undefined || until < actor.nextDueAt) actor.nextDueAt = until;
}

function wait(actor: Actor, lane: Lane, until: Date): void {
  lane.waitingUntil = until;
  lane.isPostponed = false;
  lane.clear();
  if (lane.kind === MAIN) resetCursor(actor);
}

/** Discards the queues. PostgreSQL still has the entries, and they are read again if the subscription is active. */
function forget(actor: Actor): void {
  for (const lane of actor.lanes.values()) {
    lane.clear();
    lane.waitingUntil = undefined;
  }
  actor.wanted ||= actor.subscription !== undefined;
  resetCursor(actor);
}

function resetCursor(actor: Actor): void {
  actor.cursor = 0;
  actor.generation += 1;
}

/** Returns all effects that the state allows now. */
function nextEffects(actor: Actor, now: Date): Effect[] {
  const effects: Effect[] = [];
  if (!actor.stopping) {
    updateWaits(actor, now);
    if (isBatchDue(actor, now)) {
      actor.batching = true;
      effects.push({ kind: "batch" });
    }
    sendHeads(actor, now, effects);
    endWaits(actor);
  }
  prune(actor);
  if (!actor.stopping) planLoad(actor, now, effects);
  planWake(actor, now, effects);
  if (isIdle(actor)) effects.push({ kind: "drop" });
  return effects;
}

/**
 * Ends the waits of lanes that are over, and makes a lane wait while its head is due later. After a wait a load
 * follows, because the lane is read again from its head. After a change of the ordering, entries behind the head may
 * be due later as well; such an entry makes the lane wait when it becomes the head.
 */
function updateWaits(actor: Actor, now: Date): void {
  if (actor.nextDueAt !== undefined && actor.nextDueAt <= now) {
    actor.nextDueAt = undefined;
    actor.wanted = true;
  }
  for (const lane of actor.lanes.values()) {
    if (lane.waitingUntil !== undefined && lane.waitingUntil <= now) {
      lane.waitingUntil = undefined;
      actor.wanted = true;
    }
    const dueAt = lane.queue[0]?.dueAt ?? null;
    if (dueAt === null || dueAt <= now || lane.sending || lane.halted) continue;
    const latest = addMs(now, LONGEST_WAIT_MS);
    wait(actor, lane, dueAt < latest ? dueAt : latest);
  }
}

/**
 * Ends the waits before the load that follows a wake, because a user may have made a retry due now (contract 6.14).
 * Waits after failures on our side stay. Usually the head is still not due, so the load reads few entries.
 */
function endWaits(actor: Actor): void {
  if (!actor.wanted || actor.loading || actor.batching) return;
  for (const lane of actor.lanes.values()) {
    if (lane.waitingUntil === undefined || lane.isPostponed) continue;
    lane.waitingUntil = undefined;
    actor.looksAtHead ||= lane.kind === MAIN;
  }
}

function isBatchDue({ subscription, batching }: Actor, now: Date): boolean {
  return !batching && subscription?.nextBatchAt != null && subscription.nextBatchAt <= now;
}

function sendHeads(actor: Actor, now: Date, effects: Effect[]): void {
  const { subscription, loadedAt: readAt } = actor;
  if (subscription === undefined || readAt === undefined || !isFresh(readAt, now)) return;
  const free = { main: 1, review: PARALLEL_REVIEWS, test: PARALLEL_TESTS };
  for (const lane of actor.lanes.values()) if (lane.sending) free[lane.kind] -= 1;
  const unrecorded = countUnrecorded(actor.lanes.values());
  let room = Math.min(MAX_UNRECORDED - unrecorded, roomForFailures(actor));
  for (const [name, lane] of actor.lanes) {
    if (room <= 0) return;
    if (isBlocked(lane) || free[lane.kind] <= 0) continue;
    const entry = lane.begin();
    if (entry === undefined) continue;
    free[lane.kind] -= 1;
    room -= 1;
    const possiblyRepeated = actor.inDoubt?.marked.has(entry.sequence) ?? false;
    effects.push({ kind: "send", lane: name, entry, subscription, possiblyRepeated, readAt });
  }
}

/** Removes lanes that have neither work nor a wait. */
function prune(actor: Actor): void {
  for (const [name, lane] of actor.lanes) {
    const foreign = isForeign(lane, actor);
    if (hasWork(lane) || (lane.waitingUntil !== undefined && !foreign)) continue;
    // A load that began before the commit of this test still shows it, so the lane is kept until that load has ended.
    if (lane.kind === "test" && actor.loading) continue;
    if (foreign || (lane.kind === "review" && lane.unseen)) actor.wanted = true;
    actor.lanes.delete(name);
  }
}

function isIdle(actor: Actor): boolean {
  if (actor.loading || actor.batching || actor.rechecking) return false;
  if (!actor.stopping && (actor.wanted || actor.more)) return false;
  const staysWaiting = actor.postponed > 0 && !actor.stopping;
  for (const lane of actor.lanes.values())
    if (hasWork(lane) || (staysWaiting && lane.waitingUntil !== undefined)) return false;
  return true;
}

/** Returns the earlier one of two instants; `other` counts only if it is after now. */
function earlierOf(first: Date | undefined, other: Date | null | undefined, now: Date) {
  if (other == null || other <= now) return first;
  return first === undefined || other < first ? other : first;
}

/** Plans a wake for the end of the first wait or the due batch, because an actor has no timer and may be dropped. */
function planWake(actor: Actor, now: Date, effects: Effect[]): void {
  const { lanes, subscription, nextDueAt } = actor;
  let first = earlierOf(earlierOf(undefined, subscription?.nextBatchAt, now), nextDueAt, now);
  for (const { waitingUntil } of lanes.values()) first = earlierOf(first, waitingUntil, now);
  if (first === undefined) return;
  if (actor.plannedFor !== undefined && actor.plannedFor <= first) return;
  actor.plannedFor = first;
  effects.push({ kind: "sleep", until: first });
}
