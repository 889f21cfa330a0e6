import type { Effect, LoadRequest } from "./event.ts";
import { IN_DOUBT_LOAD } from "./in-doubt.ts";
import { hasWork, MAIN } from "./lane.ts";
import { FIRST_LOAD, isForeign, isFresh, PARALLEL_REVIEWS, type Actor } from "./state.ts";

/** With a full queue, a wake looks for test events at most this often. */
const RECHECK_MS = 100;

/** A subscription that waits for the retries of this many reviews waits as a whole: its endpoint is down. */
const MAX_WAITING_LANES = 256;

export type LoadState = ReturnType<typeof loadState>;

export interface LoadPlan {
  /** `recheck`: decide again after RECHECK_MS. */
  readonly kind: "none" | "recheck" | "load";
  /** Whether more has to be read as soon as there is room. */
  readonly more: boolean;
  /** Entries to load at the most, tests apart; 0 for the settings and tests alone. */
  readonly limit: number;
}

/** Reads from Postgres what the actor has room for, if there may be anything or its settings are stale. */
export function planLoad(actor: Actor, now: Date, effects: Effect[]): void {
  if (actor.loading || actor.batching) return;
  const plan = decideLoad(loadState(actor, now));
  actor.more = plan.more;
  if (plan.kind === "recheck" && !actor.rechecking) {
    actor.rechecking = true;
    effects.push({ kind: "recheck", afterMs: RECHECK_MS });
  }
  if (plan.kind !== "load") return;
  actor.loading = true;
  actor.wanted = false;
  for (const lane of actor.lanes.values()) lane.unseen = true;
  effects.push({ kind: "load", request: loadRequest(actor, plan.limit) });
}

/**
 * Decides by what the actor has. A dash stands for either, and of the lines exactly one fits.
 *
 *     repeats   stale   wanted   more   room   waits   recent   plan           more after it
 *     yes       -       -        -      -      -       -        none           as before
 *     no        yes     -        -      -      yes     -        load 0         no
 *     no        yes     -        -      yes    no      -        load to fill   as before
 *     no        yes     no       -      no     no      -        load 0         as before
 *     no        yes     yes      -      no     no      -        load 0         yes
 *     no        no      yes      -      -      yes     -        load 0         no
 *     no        no      no       -      -      yes     -        none           no
 *     no        no      yes      -      yes    no      -        load to fill   as before
 *     no        no      no       yes    yes    no      -        load to fill   yes
 *     no        no      no       no     yes    no      -        none           no
 *     no        no      no       -      no     no      -        none           as before
 *     no        no      yes      -      no     no      yes      recheck        as before
 *     no        no      yes      -      no     no      no       load 0         yes
 *
 * There is room while half of the queue is empty, or a review could be sent that has nothing in memory.
 */
export function decideLoad(state: LoadState): LoadPlan {
  if (state.repeats) return { kind: "none", more: state.more, limit: 0 };
  const { waits, stale, wanted } = state;
  const more = state.more && !waits;
  const hasRoom = !waits && (state.queued <= state.capacity / 2 || state.freeReviews > 0);
  const isFull = !hasRoom && !waits;
  if (!stale && !wanted && !(more && hasRoom)) return { kind: "none", more, limit: 0 };
  if (!stale && isFull && state.recent) return { kind: "recheck", more, limit: 0 };
  return {
    kind: "load",
    // What the wake announced stands behind a full queue: it is read when there is room.
    more: more || (wanted && isFull),
    limit: hasRoom ? Math.max(state.capacity - state.queued, state.freeReviews) : 0,
  };
}

/** Everything that the decision about the next load depends on. */
function loadState(actor: Actor, now: Date) {
  const { loadedAt } = actor;
  let queued = 0;
  let waiting = 0;
  // Reviews that are slow and have much queued do not keep out the others.
  let freeReviews = actor.subscription?.ordering === "review" ? PARALLEL_REVIEWS : 0;
  for (const lane of actor.lanes.values()) {
    queued += lane.queue.length;
    if (lane.waitingUntil !== undefined) waiting += 1;
    if (lane.kind === "review" && hasWork(lane)) freeReviews -= 1;
  }
  return {
    /** A load would show again what is under way. */
    repeats: wouldRepeat(actor),
    /** A wake came since the last load began. */
    wanted: actor.wanted,
    /** The last load was cut at its limit. */
    more: actor.more,
    /** Entries in the queues of all lanes. */
    queued,
    /** How many of them there may be. */
    capacity: loadedAt === undefined ? firstCapacity(actor) : actor.capacity,
    /** Reviews that may be sent beside those with a lane. */
    freeReviews,
    /** The endpoint is down: what stands behind the waits is read when they are over. */
    waits: actor.lanes.get(MAIN)?.waitingUntil !== undefined || waiting >= MAX_WAITING_LANES,
    /** The last load was answered less than RECHECK_MS ago. */
    recent: loadedAt !== undefined && now.getTime() - loadedAt.getTime() < RECHECK_MS,
    /** Something is queued, and its settings are too old to be sent with. */
    stale: queued > 0 && (loadedAt === undefined || !isFresh(loadedAt, now)),
  };
}

/** Of a single lane the first load shows all that a dead process may have sent: later the lanes may be others. */
function firstCapacity({ inDoubt, capacity }: Actor): number {
  return inDoubt === undefined ? Math.min(FIRST_LOAD, capacity) : IN_DOUBT_LOAD;
}

/**
 * Whether a load would show again what is under way, which is still unsettled in Postgres. After the queues were thrown
 * away the cursor does not exclude it, nor do the lanes of another ordering. The load follows when it has ended.
 */
function wouldRepeat(actor: Actor): boolean {
  for (const lane of actor.lanes.values()) {
    const isUnderWay = lane.sending || lane.uncommitted > 0;
    const isExcluded = lane.kind !== MAIN || actor.cursor > 0;
    if (isUnderWay && (isForeign(lane, actor) || !isExcluded)) return true;
  }
  return false;
}

/** Whether the queues were thrown away since this was asked for: the answer may lack what was in them. */
export function isOutdated({ generation }: LoadRequest, actor: Actor): boolean {
  return generation !== actor.generation;
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
