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
  takeDecision,
  Lane,
} from "./lane.ts";

/*
 * Each subscription has one actor: a state machine without I/O. `step` takes an event and returns the effects to
 * perform, both for the dispatcher and for the simulation. PostgreSQL stores all state that must survive, so an actor
 * with nothing to do is dropped, and a wake loads it again.
 */

/** The most test events of a subscription that are under way at the same time. */
const PARALLEL_TESTS = 4;

/** The difference in milliseconds from which on a clock counts as set back, and not as corrected by a new reading. */
const SET_BACK_MS = 5_000;
/**
 * The longest wait in milliseconds for a due time before the lane is read again, because a due time that the clock wrote
 * while it was ahead is brought back (due-time-queries.ts).
 */
const LONGEST_WAIT_MS = 120_000;

/** Applies one event to the actor and returns the effects to perform. */
export function step(actor: Actor, event: ActorEvent, now: Date): Effect[] {
  // The clock was set back, and the ends of all waits came from the clock before. PostgreSQL has the right ones.
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
      takeLoaded(actor, event.loaded, now);
      break;
    case "unsent":
      takeUnsent(actor, event);
      break;
    case "postponed":
      takePostponed(actor, event.lane, event.until);
      break;
    case "answered":
      takeAnswer(actor, event, now);
      break;
    case "committed":
      takeCommit(actor, event);
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
  return next(actor, now);
}

function takeLoaded(actor: Actor, { request, found }: Loaded, now: Date): void {
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
  // An account was deactivated, so that queued entries are held, or activated, so that earlier entries are due again.
  if (before.inactiveAccounts !== found.subscription.inactiveAccounts) forget(actor);
  // Queued entries are held while a test is pending.
  if (before.pendingTestEventId !== found.subscription.pendingTestEventId) forget(actor);
  // Something was erased, which queued entries may still have.
  if (before.erasures !== found.subscription.erasures) forget(actor);
  // The ordering has changed since the load began, and with it the lanes. Entries under way end first, then all are
  // read again.
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
  // Meanwhile there was no room for entries.
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
  // The entries are held, and no load shows them.
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
  // Entries of a review that waits or waited are shown one after the other, each once it may be sent.
  if (isAll && request.exceptReviews.length === 0 && !(isByReview && waits)) complete(inDoubt);
}

function enqueue(actor: Actor, ordering: Subscription["ordering"], entry: Entry): void {
  const name = laneName(ordering, entry);
  let lane = actor.lanes.get(name);
  if (lane === undefined) actor.lanes.set(name, (lane = new Lane(name, entry)));
  // Every load shows all tests, so a test that has a lane is queued already.
  else if (lane.kind === "test") return;
  if (lane.waitingUntil !== undefined) return;
  if (lane.kind === MAIN) actor.cursor = Math.max(actor.cursor, entry.sequence);
  if (actor.inDoubt) markInDoubt(actor.inDoubt, entry);
  if (lane.kind === "review" && entry.isFirstOnly) lane.unseen = true;
  lane.push(entry);
}

function takeUnsent(actor: Actor, event: ActorEvent & { kind: "unsent" }): void {
  const lane = actor.lanes.get(event.lane);
  lane?.end();
  forget(actor);
  // The load that follows shows whether the subscription was enabled again meanwhile.
  if (event.isEnded) actor.subscription = undefined;
}

/**
 * Makes a lane wait after a failure on our side. PostgreSQL does not know this wait, so the actor stays in memory:
 * otherwise a sweep would make it try again sooner.
 */
function takePostponed(actor: Actor, name: string, until: Date): void {
  const lane = actor.lanes.get(name);
  if (lane === undefined) return;
  lane.end();
  wait(actor, lane, until);
  actor.postponed += 1;
}

function takeAnswer(actor: Actor, event: ActorEvent & { kind: "answered" }, now: Date): void {
  actor.postponed = 0;
  const lane = actor.lanes.get(event.lane);
  if (lane === undefined) return;
  takeDecision(lane, event.decision, now);
  countFailure(actor, event.decision);
  actor.inDoubt?.marked.delete(lane.sent);
}

/** Counts the outcome of a delivery like its commit, which applies the outcomes in the same order. */
function countFailure(actor: Actor, { kind }: Decision): void {
  actor.readsFailures = false;
  if (kind === "delivered") actor.failures = 0;
  if (kind === "failed") actor.failures += 1;
}

function takeCommit(actor: Actor, event: ActorEvent & { kind: "committed" }): void {
  const lane = actor.lanes.get(event.lane);
  if (lane === undefined) return;
  lane.uncommitted -= 1;
  // The last load may have left out a test that has room now.
  if (lane.kind === "test" && actor.moreTests) actor.wanted = true;
  if (event.decision.kind !== "delivered") lane.halted = false;
  if (event.decision.kind === "retry" && lane.retryAt) awaitRetry(actor, lane, lane.retryAt);
  if (event.decision.kind === "interrupted") forget(actor);
  // The record of a pending test decides whether the subscription is active. The load that follows shows it.
  if (actor.subscription?.pendingTestEventId != null) actor.wanted = true;
  if (!event.active) deactivate(actor);
}

/** Notes that the subscription is disabled or deleted, so that the queued entries are held or deleted, too. */
function deactivate(actor: Actor): void {
  actor.subscription = undefined;
  actor.more = false;
  forget(actor);
}

/** A review that waits for a retry needs no lane, because loads leave it out until then. */
function awaitRetry(actor: Actor, lane: Lane, until: Date): void {
  if (lane.kind !== "review") return wait(actor, lane, until);
  lane.clear();
  if (actor.nextDueAt === undefined || until < actor.nextDueAt) actor.nextDueAt = until;
}

function wait(actor: Actor, lane: Lane, until: Date): void {
  lane.waitingUntil = until;
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
function next(actor: Actor, now: Date): Effect[] {
  const effects: Effect[] = [];
  if (!actor.stopping) {
    updateWaits(actor, now);
    if (isBatchDue(actor, now)) {
      actor.batching = true;
      effects.push({ kind: "batch" });
    }
    sendHeads(actor, now, effects);
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
function earlier(first: Date | undefined, other: Date | null | undefined, now: Date) {
  if (other == null || other <= now) return first;
  return first === undefined || other < first ? other : first;
}

/** Plans a wake for the end of the first wait or the due batch, because an actor has no timer and may be dropped. */
function planWake(actor: Actor, now: Date, effects: Effect[]): void {
  const { lanes, subscription, nextDueAt } = actor;
  let first = earlier(earlier(undefined, subscription?.nextBatchAt, now), nextDueAt, now);
  for (const { waitingUntil } of lanes.values()) first = earlier(first, waitingUntil, now);
  if (first === undefined) return;
  if (actor.plannedFor !== undefined && actor.plannedFor <= first) return;
  actor.plannedFor = first;
  effects.push({ kind: "sleep", until: first });
}
