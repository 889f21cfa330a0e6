import type { Effect, Entry, LoadRequest } from "./event.ts";
import { IN_DOUBT_LOAD } from "./in-doubt.ts";
import { hasWork, MAIN } from "./lane.ts";
import {
  countOutcomes,
  ENTRY_BYTES,
  FIRST_LOAD,
  isForeign,
  isFresh,
  PARALLEL_REVIEWS,
  type Actor,
} from "./state.ts";

/**
 * The shortest interval in milliseconds between two loads in which a woken actor with a full queue looks for test
 * events.
 */
const RECHECK_MS = 100;

/**
 * If this many reviews of a subscription wait after a failure on our side, the whole subscription waits. These waits
 * are not stored in PostgreSQL, so each of them needs a lane in memory. A review that waits for a retry needs none.
 */
const MAX_POSTPONED_LANES = 256;

export type LoadState = ReturnType<typeof loadState>;

export interface LoadPlan {
  /** The kind of the next load. `recheck`: the decision is made again after RECHECK_MS. */
  readonly kind: "none" | "recheck" | "load";
  /** Whether more entries have to be read as soon as the actor has room. */
  readonly more: boolean;
  /** The most entries to load, besides tests; 0 loads the settings and tests only. */
  readonly limit: number;
}

/** Requests a load if the actor has room and PostgreSQL may have more entries, or if the settings are stale. */
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
  actor.looksAtHead = false;
  actor.readsFailures = countOutcomes(actor).uncommitted === 0;
  for (const lane of actor.lanes.values()) lane.unseen = true;
  actor.filling = plan.limit > 0;
  effects.push({ kind: "load", request: loadRequest(actor, plan.limit) });
}

/**
 * Decides the next load. A dash means that the value does not matter. Exactly one row fits each state.
 *
 *     stale   wanted   more   room   waits   recent   plan           more after it
 *     yes     -        -      -      yes     -        load 0         no
 *     yes     -        -      yes    no      -        load to fill   as before
 *     yes     no       -      no     no      -        load 0         as before
 *     yes     yes      -      no     no      -        load 0         yes
 *     no      yes      -      -      yes     -        load 0         no
 *     no      no       -      -      yes     -        none           no
 *     no      yes      -      yes    no      -        load to fill   as before
 *     no      no       yes    yes    no      -        load to fill   yes
 *     no      no       no     yes    no      -        none           no
 *     no      no       -      no     no      -        none           as before
 *     no      yes      -      no     no      yes      recheck        as before
 *     no      yes      -      no     no      no       load 0         yes
 *
 * There is room while half of the queue is empty, in entries and in bytes, or while another review could be sent. There
 * is no room while a load would repeat entries, or while the entries of all actors have too many bytes.
 */
export function decideLoad(state: LoadState): LoadPlan {
  const { waits, stale, wanted } = state;
  const more = state.more && !waits;
  const isHalfEmpty =
    state.queued <= state.capacity / 2 && state.bytes <= (state.capacity * ENTRY_BYTES) / 2;
  const mayRead = !state.repeats && !state.isCrowded;
  const hasRoom = !waits && mayRead && (isHalfEmpty || state.freeReviews > 0);
  const isFull = !hasRoom && !waits;
  if (!stale && !wanted && !(more && hasRoom)) return { kind: "none", more, limit: 0 };
  if (!stale && isFull && state.recent) return { kind: "recheck", more, limit: 0 };
  return {
    kind: "load",
    // If the queue is full, new entries are read when it has room, because they come after those in the queue.
    more: more || (wanted && isFull),
    limit: hasRoom ? Math.max(state.capacity - state.queued, state.freeReviews) : 0,
  };
}

/** Collects the state on which the next load depends. */
function loadState(actor: Actor, now: Date) {
  const { loadedAt, looksAtHead, queued, bytes } = actor;
  let waiting = 0;
  // Free reviews count as room, so that a queue full of entries of a few slow reviews does not delay the other reviews.
  let freeReviews = actor.subscription?.ordering === "review" ? PARALLEL_REVIEWS : 0;
  for (const lane of actor.lanes.values()) {
    if (lane.waitingUntil !== undefined) waiting += 1;
    if (lane.kind === "review" && hasWork(lane)) freeReviews -= 1;
  }
  return {
    /** True if a load would show entries again that are under way. */
    repeats: wouldRepeat(actor),
    /** True if a wake came since the last load began. */
    wanted: actor.wanted,
    /** True if the last load was cut off at its limit. */
    more: actor.more,
    /** The number of entries in the queues of all lanes. */
    queued,
    /** The bytes of the entries that are queued or under way. */
    bytes,
    /**
     * True while the entries of the actor have as many bytes as it may hold (`mayHold`) or read ahead (`mayReadAhead`).
     */
    isCrowded: bytes >= actor.mayHold || (bytes > 0 && bytes >= actor.mayReadAhead),
    /** The most entries that may be queued. */
    capacity: loadedAt === undefined || looksAtHead ? firstCapacity(actor) : actor.capacity,
    /** The number of reviews that may be sent besides those with a lane. */
    freeReviews,
    /**
     * True while the main lane or very many lanes wait. The entries behind the waiting ones are read when the waits are
     * over.
     */
    waits: actor.lanes.get(MAIN)?.waitingUntil !== undefined || waiting >= MAX_POSTPONED_LANES,
    /** True if the last load was answered less than RECHECK_MS ago. */
    recent: loadedAt !== undefined && now.getTime() - loadedAt.getTime() < RECHECK_MS,
    /** True if an entry is queued, and the settings are too old for a send. */
    stale: queued > 0 && (loadedAt === undefined || !isFresh(loadedAt, now)),
  };
}

/**
 * Returns the limit of a load that may show entries which are not due. After a takeover the limit covers all entries of
 * a lane that may have been sent, because a later load may show other lanes.
 */
function firstCapacity({ inDoubt, capacity }: Actor): number {
  return inDoubt === undefined ? Math.min(FIRST_LOAD, capacity) : IN_DOUBT_LOAD;
}

/**
 * Whether a load would show entries that are under way, because PostgreSQL does not have their outcome yet. After the
 * queues were discarded, the cursor does not exclude these entries; after a change of the ordering, the lanes do not.
 * The load is made when no such entry is under way any more.
 */
function wouldRepeat(actor: Actor): boolean {
  for (const lane of actor.lanes.values()) {
    const isUnderWay = lane.sending || lane.uncommitted > 0;
    const isExcluded = lane.kind !== MAIN || actor.cursor > 0;
    if (isUnderWay && (isForeign(lane, actor) || !isExcluded)) return true;
  }
  return false;
}

/**
 * Whether the actor's queues were discarded since this load was requested: its result may lack the entries that were
 * in the queues.
 */
export function isOutdated({ generation }: LoadRequest, actor: Actor): boolean {
  return generation !== actor.generation;
}

/** Makes a load request for up to `limit` entries besides tests; 0 reads the settings and tests only. */
export function loadRequest(actor: Actor, limit: number): LoadRequest {
  const { id, shard, generation, cursor: after } = actor;
  const lanes = [...actor.lanes.values()].filter((lane) => lane.kind === "review");
  const exceptReviews = lanes.map((lane) => lane.reviewId);
  const maxBytes = limit * ENTRY_BYTES;
  const ordering = actor.subscription?.ordering;
  const isNumbered = (actor.subscription?.settledLimit ?? null) !== null;
  return { id, shard, ordering, isNumbered, generation, after, limit, maxBytes, exceptReviews };
}

type LoadAmount = Pick<LoadRequest, "limit" | "maxBytes">;
type SizedEntry = Pick<Entry, "bytes">;

/** Returns the first entries that a load brings: up to `limit`, and up to the one that reaches `maxBytes`. */
export function fitting<E extends SizedEntry>(
  { limit, maxBytes }: LoadAmount,
  entries: readonly E[],
): E[] {
  let before = 0;
  const end = entries.findIndex(({ bytes }, i) => {
    if (i >= limit || before >= maxBytes) return true;
    before += bytes;
    return false;
  });
  return entries.slice(0, end === -1 ? entries.length : end);
}

/** Whether these entries fill a load, so that more may follow them. */
export function fills({ limit, maxBytes }: LoadAmount, entries: readonly SizedEntry[]): boolean {
  return entries.length >= limit || entries.reduce((sum, { bytes }) => sum + bytes, 0) >= maxBytes;
}
