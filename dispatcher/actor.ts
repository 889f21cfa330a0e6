import type { ActorEvent, Effect, Loaded, LoadRequest } from "./actor-event.ts";
import type { Decision } from "./decide.ts";
import type { Entry, Subscription } from "./entry.ts";
import { createLane, hasWork, laneName, MAIN, type Lane } from "./lane.ts";

/*
 * One actor per subscription: a state machine without I/O. `step` takes what happened and answers what to do next;
 * the process and the simulation run the same code. Postgres remembers everything that matters, so an actor with
 * nothing to do is dropped, and a wake loads it again.
 */

/** In a lane, at most this many outcomes may wait for their commit while the next entry is sent (decisions.md 4). */
export const SEND_AHEAD = 16;
/** Entries that an actor holds in memory. */
export const CHUNK = 64;
/** Requests at once per subscription where reviews have lanes of their own; and of test events. */
export const PARALLEL_REVIEWS = 8;
const PARALLEL_TESTS = 4;
/** A subscription waiting for retries of this many reviews waits as a whole: its endpoint is down. */
const MAX_WAITING_LANES = 256;
/** A URL or secret older than this is read again before it is used (decisions.md 4: read at each attempt). */
const SETTINGS_MAX_AGE_MS = 1_000;
/** With a full queue, a wake looks for test events at most this often. */
const RECHECK_MS = 100;

export interface Actor {
  readonly id: string;
  readonly shard: number;
  subscription: Subscription | undefined;
  loadedAt: Date | undefined;
  readonly lanes: Map<string, Lane>;
  /** The highest sequence taken into the main lane. */
  cursor: number;
  /** Counts the times that the queues were thrown away: an answer to an older load is not used. */
  generation: number;
  loading: boolean;
  batching: boolean;
  rechecking: boolean;
  /** A wake came since the last load began: Postgres may hold more than that load saw. */
  wanted: boolean;
  /** The last load was cut at its limit. */
  more: boolean;
  /** A wake is planned for this instant; undefined once one came. */
  plannedFor: Date | undefined;
  /** Nothing new is sent any more: the process stops, or the shard is given up. */
  stopping: boolean;
}

export function createActor(id: string, shard: number): Actor {
  return {
    id,
    shard,
    subscription: undefined,
    loadedAt: undefined,
    lanes: new Map(),
    cursor: 0,
    generation: 0,
    loading: false,
    batching: false,
    rechecking: false,
    wanted: false,
    more: false,
    plannedFor: undefined,
    stopping: false,
  };
}

/** Applies one event to the actor and answers what has to be done now. */
export function step(actor: Actor, event: ActorEvent, now: Date): Effect[] {
  const effects: Effect[] = [];
  switch (event.kind) {
    case "woken":
      actor.wanted = true;
      actor.plannedFor = undefined;
      break;
    case "rechecked":
      actor.rechecking = false;
      break;
    case "loaded":
      takeLoaded(actor, event.loaded, now);
      break;
    case "unsent":
      takeUnsent(actor, event.lane);
      break;
    case "answered":
      takeAnswer(actor.lanes.get(event.lane), event.decision);
      break;
    case "committed":
      takeCommit(actor, event);
      break;
    case "batched":
      actor.batching = false;
      actor.wanted = true;
      // The load that follows says when the next one is due.
      if (actor.subscription) actor.subscription = { ...actor.subscription, nextBatchAt: null };
      break;
    case "stopped":
      actor.stopping = true;
      forget(actor);
      break;
  }
  return next(actor, now, effects);
}

function takeLoaded(actor: Actor, { request, found }: Loaded, now: Date): void {
  actor.loading = false;
  if (found === undefined) {
    // Disabled or deleted: its entries are held or gone, whatever the queues say.
    actor.subscription = undefined;
    actor.more = false;
    forget(actor);
    return;
  }
  actor.subscription = found.subscription;
  actor.loadedAt = now;
  // The lanes mean something else now, or did when the load began: what is under way ends, then all is read anew.
  const byReview = found.subscription.ordering === "review";
  const isMisread = byReview ? request.after > 0 : request.exceptReviews.length > 0;
  if (isMisread || actor.lanes.values().some((lane) => isForeign(lane, actor))) forget(actor);
  if (actor.stopping) return;
  if (request.generation !== actor.generation) {
    actor.wanted = true;
    return;
  }
  if (request.limit > 0) actor.more = found.entries.length >= request.limit;
  for (const entry of [...found.entries, ...found.tests])
    enqueue(actor, found.subscription.ordering, entry);
}

function enqueue(actor: Actor, ordering: Subscription["ordering"], entry: Entry): void {
  const name = laneName(ordering, entry);
  let lane = actor.lanes.get(name);
  if (lane === undefined) actor.lanes.set(name, (lane = createLane(name, entry)));
  // Tests are read from the start each time: one that has its lane is known.
  else if (lane.kind === "test") return;
  if (lane.waitingUntil !== undefined) return;
  if (lane.kind === MAIN) actor.cursor = Math.max(actor.cursor, entry.sequence);
  lane.queue.push(entry);
}

function takeUnsent(actor: Actor, name: string): void {
  const lane = actor.lanes.get(name);
  if (lane !== undefined) lane.sending = false;
  forget(actor);
}

function takeAnswer(lane: Lane | undefined, decision: Decision): void {
  if (lane === undefined) return;
  lane.sending = false;
  lane.uncommitted += 1;
  if (decision.kind !== "delivered") lane.halted = true;
}

function takeCommit(actor: Actor, event: ActorEvent & { kind: "committed" }): void {
  const lane = actor.lanes.get(event.lane);
  if (lane === undefined) return;
  lane.uncommitted -= 1;
  if (event.decision.kind !== "delivered") lane.halted = false;
  if (event.decision.kind === "retry") wait(actor, lane, event.decision.dueAt);
  if (event.decision.kind === "interrupted") forget(actor);
  if (event.active) return;
  actor.subscription = undefined;
  actor.more = false;
  forget(actor);
}

function wait(actor: Actor, lane: Lane, until: Date): void {
  lane.waitingUntil = until;
  lane.queue.length = 0;
  if (lane.kind === MAIN) resetCursor(actor);
}

/** Drops what is queued: Postgres still holds it, and it is read again if there is a subscription to read it for. */
function forget(actor: Actor): void {
  for (const lane of actor.lanes.values()) {
    lane.queue.length = 0;
    lane.waitingUntil = undefined;
  }
  actor.wanted ||= actor.subscription !== undefined;
  resetCursor(actor);
}

function resetCursor(actor: Actor): void {
  actor.cursor = 0;
  actor.generation += 1;
}

/** Everything that can be done now, given the state. */
function next(actor: Actor, now: Date, effects: Effect[]): Effect[] {
  if (!actor.stopping) {
    expireWaits(actor, now);
    parkHeads(actor, now);
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

/** Ends the waits that are over: such a lane is read again from its head. */
function expireWaits(actor: Actor, now: Date): void {
  for (const lane of actor.lanes.values()) {
    if (lane.waitingUntil === undefined || lane.waitingUntil > now) continue;
    lane.waitingUntil = undefined;
    actor.wanted = true;
  }
}

/**
 * A lane waits while its head is due later. Since the ordering changed, entries behind the head can have been tried
 * too; they count when it is their turn.
 */
function parkHeads(actor: Actor, now: Date): void {
  for (const lane of actor.lanes.values()) {
    const dueAt = lane.queue[0]?.dueAt ?? null;
    if (dueAt !== null && dueAt > now && !lane.sending && !lane.halted) wait(actor, lane, dueAt);
  }
}

function isBatchDue({ subscription, batching }: Actor, now: Date): boolean {
  return !batching && subscription?.nextBatchAt != null && subscription.nextBatchAt <= now;
}

/** Whether settings read at this instant may still be used. */
export function isFresh(readAt: Date, now: Date): boolean {
  return Math.abs(now.getTime() - readAt.getTime()) < SETTINGS_MAX_AGE_MS;
}

function sendHeads(actor: Actor, now: Date, effects: Effect[]): void {
  const { subscription, loadedAt } = actor;
  if (subscription === undefined || loadedAt === undefined || !isFresh(loadedAt, now)) return;
  const free = { main: 1, review: PARALLEL_REVIEWS, test: PARALLEL_TESTS };
  for (const lane of actor.lanes.values()) if (lane.sending) free[lane.kind] -= 1;
  for (const [name, lane] of actor.lanes) {
    const blocked = lane.sending || lane.halted || lane.uncommitted >= SEND_AHEAD;
    if (blocked || free[lane.kind] <= 0) continue;
    const entry = lane.queue.shift();
    if (entry === undefined) continue;
    lane.sending = true;
    free[lane.kind] -= 1;
    effects.push({ kind: "send", lane: name, entry, subscription, readAt: loadedAt });
  }
}

/** Removes the lanes that have nothing left. */
function prune(actor: Actor): void {
  for (const [name, lane] of actor.lanes) {
    const foreign = isForeign(lane, actor);
    if (hasWork(lane) || (lane.waitingUntil !== undefined && !foreign)) continue;
    // A load that began before its commit still shows this test: it has to be known until then.
    if (lane.kind === "test" && actor.loading) continue;
    if (foreign || (lane.kind === "review" && lane.unseen)) actor.wanted = true;
    actor.lanes.delete(name);
  }
}

/** A lane from before the ordering changed. */
function isForeign(lane: Lane, { subscription }: Actor): boolean {
  if (subscription === undefined || lane.kind === "test") return false;
  return (lane.kind === "review") !== (subscription.ordering === "review");
}

function planLoad(actor: Actor, now: Date, effects: Effect[]): void {
  if (actor.loading || actor.batching || wouldRepeat(actor)) return;
  let queued = 0;
  let waiting = 0;
  // Reviews that are slow and have much queued do not keep out the others.
  let free = actor.subscription?.ordering === "review" ? PARALLEL_REVIEWS : 0;
  for (const lane of actor.lanes.values()) {
    queued += lane.queue.length;
    if (lane.waitingUntil !== undefined) waiting += 1;
    if (lane.kind === "review" && hasWork(lane)) free -= 1;
  }
  const waits = actor.lanes.get(MAIN)?.waitingUntil !== undefined || waiting >= MAX_WAITING_LANES;
  // What is behind a wait is read when it is over.
  if (waits) actor.more = false;
  const hungry = !waits && (queued <= CHUNK / 2 || free > 0);
  const stale = queued > 0 && (actor.loadedAt === undefined || !isFresh(actor.loadedAt, now));
  if (!stale && !actor.wanted && !(actor.more && hungry)) return;
  if (!stale && !hungry && !waits && recentlyLoaded(actor, now))
    return recheckLater(actor, effects);
  // What the wake announced stands behind a full queue: it is read when there is room.
  if (actor.wanted && !hungry && !waits) actor.more = true;
  actor.loading = true;
  actor.wanted = false;
  for (const lane of actor.lanes.values()) lane.unseen = true;
  effects.push({
    kind: "load",
    request: loadRequest(actor, hungry ? Math.max(CHUNK - queued, free) : 0),
  });
}

/**
 * Whether a load would show again what is under way, in Postgres still unsettled: after the queues were thrown away
 * the cursor does not exclude it, nor do the lanes of another ordering. Once that has ended, the load follows.
 */
function wouldRepeat(actor: Actor): boolean {
  for (const lane of actor.lanes.values()) {
    const isUnderWay = lane.sending || lane.uncommitted > 0;
    const isExcluded = lane.kind !== MAIN || actor.cursor > 0;
    if (isUnderWay && (isForeign(lane, actor) || !isExcluded)) return true;
  }
  return false;
}

function recentlyLoaded({ loadedAt }: Actor, now: Date): boolean {
  return loadedAt !== undefined && now.getTime() - loadedAt.getTime() < RECHECK_MS;
}

function recheckLater(actor: Actor, effects: Effect[]): void {
  if (actor.rechecking) return;
  actor.rechecking = true;
  effects.push({ kind: "recheck", afterMs: RECHECK_MS });
}

/** Asks for the settings alone. */
export function settingsRequest(actor: Actor): LoadRequest {
  return loadRequest(actor, 0);
}

function loadRequest(actor: Actor, limit: number): LoadRequest {
  const lanes = [...actor.lanes.values()].filter((lane) => lane.kind === "review");
  return {
    id: actor.id,
    shard: actor.shard,
    generation: actor.generation,
    after: actor.cursor,
    limit,
    exceptReviews: lanes.map((lane) => lane.reviewId),
  };
}

function isIdle(actor: Actor): boolean {
  if (actor.loading || actor.batching) return false;
  if (!actor.stopping && (actor.wanted || actor.more)) return false;
  for (const lane of actor.lanes.values()) if (hasWork(lane)) return false;
  return true;
}

/** Plans to be woken when the first wait ends or the batch is due: busy or dropped, the actor has no timer of its own. */
function planWake(actor: Actor, now: Date, effects: Effect[]): void {
  const batchAt = actor.subscription?.nextBatchAt ?? undefined;
  let first = batchAt !== undefined && batchAt > now ? batchAt : undefined;
  for (const { waitingUntil } of actor.lanes.values())
    if (waitingUntil !== undefined && waitingUntil > now && (!first || waitingUntil < first))
      first = waitingUntil;
  if (first === undefined) return;
  if (actor.plannedFor !== undefined && actor.plannedFor <= first) return;
  actor.plannedFor = first;
  effects.push({ kind: "sleep", until: first });
}
