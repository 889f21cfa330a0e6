import type { Effect, LoadRequest } from "./event.ts";
import { CHUNK, isForeign, isFresh, PARALLEL_REVIEWS, type Actor } from "./state.ts";
import { hasWork, MAIN } from "./lane.ts";

/** A subscription waiting for retries of this many reviews waits as a whole: its endpoint is down. */
const MAX_WAITING_LANES = 256;
/** With a full queue, a wake looks for test events at most this often. */
const RECHECK_MS = 100;

/** Reads from Postgres what the actor has room for, if there may be anything or its settings are stale. */
export function planLoad(actor: Actor, now: Date, effects: Effect[]): void {
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
