import { LIMITS } from "../../dispatcher/delivery/limits.ts";
import { MAX_UNRECORDED, SEND_AHEAD } from "../../dispatcher/actor/lane.ts";
import { laneOf, shareLane } from "../verdicts/lanes.ts";
import { ATTEMPTS } from "../verdicts/outcome.ts";
import { checkNumbers } from "./check-numbers.ts";
import { queueOf } from "./log.ts";
import type { Tables } from "./tables.ts";
import type { Post, Watch } from "./watch.ts";
import { EPOCH_MS, STEP_EXCUSE_MS, type World } from "./world.ts";

export interface CheckDeps {
  readonly world: World;
  readonly tables: Tables;
  readonly watch: Watch;
}

/** The most reviews and tests at once of an actor, repeated here so that a change of them fails a check. */
export const PARALLEL_REVIEWS = 8;
export const PARALLEL_TESTS = 4;
/** SETTINGS_MAX_AGE_MS of the actor, CLOCK_TOLERANCE_MS of a suspension, and the rounding to the millisecond. */
const SETTINGS_AGE_MS = 1_501;
/** The time without a fault after which lateness counts. */
const CALM_MS = 20_000;
/**
 * The time after the start or end of a process in which a shard with a hanging request may still move: PATIENCE_MS and
 * a margin.
 */
const LATE_MOVE_MS = 25_000;
/** The most that an idle dispatcher may be late, and the limit for the load of changed settings. */
const RETRY_LATE_MS = 250;
const FRESH_LATE_MS = 250;
/** The longest time to split a group, and the time after a row lock or a rejected record for which that counts. */
const SPLIT_MS = 1_500;
const SPLIT_EXCUSE_MS = 4_000;

type Check = (deps: CheckDeps, post: Post) => void;

/**
 * Checks that only the holder of the shard sends, because a holder stops before another process can take over, and that
 * it has a bounded number of unrecorded attempts of the subscription, over all lanes.
 */
export function checkLeaving(deps: CheckDeps, post: Post): void {
  const { tables, watch } = deps;
  const owner = tables.owners[post.subscription.shard];
  if (owner !== post.dispatcherId)
    say(deps, post, "one owner", `as ${post.dispatcherId}, but the shard is of ${owner}`);
  let unrecorded = watch.unrecorded.get(post.dispatcherId);
  if (unrecorded === undefined)
    watch.unrecorded.set(post.dispatcherId, (unrecorded = new Set<Post>()));
  unrecorded.add(post);
  if (unrecorded.size > MAX_UNRECORDED)
    say(deps, post, "bounded attempts without a record", `the ${unrecorded.size}th`);
}

/** Checks everything that must be true when a POST begins. */
export function checkPost(deps: CheckDeps, post: Post): void {
  for (const check of CHECKS) check(deps, post);
}

function say(
  { world }: Pick<CheckDeps, "world">,
  post: Post,
  invariant: string,
  what: string,
): void {
  const { subscription, entry, attempt, process } = post;
  const which = `${process.name} POSTs ${subscription.id}#${entry.sequence}/${attempt}`;
  world.violate(invariant, `${which} ${what}`, subscription.id);
}

const checkEntry: Check = (deps, post) => {
  const { entry, subscription, attempt, process } = post;
  if (attempt < 1 || attempt > ATTEMPTS) say(deps, post, "right attempt", "which no entry has");
  // The entry was skipped, whether its row is still in the outbox or not.
  const { watch } = deps;
  const isSkipped = entry.sequence <= watch.skippedThrough;
  const settled = subscription.settled.get(entry.sequence);
  if (settled !== undefined || isSkipped) {
    const state = settled?.state ?? "skipped";
    const settledMs = settled?.settledMs ?? watch.skippedMs;
    const read = watch.settings.get(process);
    if (state !== "skipped" || settledMs <= (read?.snapshotMs ?? 0))
      say(deps, post, "nothing after settled", `which is ${state}`);
    return;
  }
  if (attempt !== entry.attempt) say(deps, post, "right attempt", `instead of ${entry.attempt}`);
  const earlyMs = (entry.dueAtMs ?? 0) - deps.world.postgresMs;
  if (earlyMs > 0 && deps.world.nowMs - deps.world.steppedMs > STEP_EXCUSE_MS)
    say(deps, post, "never early", `${earlyMs} ms before it is due`);
};

/**
 * Checks that after a delete, a disabling or a change only entries of an earlier load are sent, and only for a short
 * time.
 */
const checkSettings: Check = (deps, post) => {
  const { subscription, process } = post;
  const read = deps.watch.settings.get(process);
  const ageMs = deps.world.nowMs - (read?.handedMs ?? Number.NEGATIVE_INFINITY);
  if (ageMs > SETTINGS_AGE_MS && deps.world.nowMs - deps.world.steppedMs > STEP_EXCUSE_MS)
    say(deps, post, "settings of the moment", `with settings ${Math.round(ageMs)} ms old`);
  if (subscription.state !== "active" && subscription.changedMs <= (read?.snapshotMs ?? 0))
    say(deps, post, "only to the active", `which is ${subscription.state}`);
};

/**
 * Checks that an event which was erased is sent with the body of before for a short time only, by a process that has
 * settings of before.
 */
const checkErased: Check = (deps, post) => {
  const erasedMs = deps.tables.erasedMs.get(post.entry.eventId);
  if (erasedMs === undefined || !post.isNamed) return;
  const sinceMs = Math.max(erasedMs, deps.watch.outlivedMs.get(post.process) ?? 0);
  const lateMs = deps.world.nowMs - sinceMs;
  if (lateMs > SETTINGS_AGE_MS && deps.world.nowMs - deps.world.steppedMs > STEP_EXCUSE_MS)
    say(deps, post, "no body of the erased", `${Math.round(lateMs)} ms after the erasure`);
};

const checkOverlap: Check = (deps, post) => {
  let [reviews, tests] = [0, 0];
  for (const other of deps.watch.inFlight) {
    const living = other.process.alive && deps.tables.dispatchers.has(other.dispatcherId);
    if (!living) continue;
    if (shareLane(post.ordering, post.entry, other.entry))
      say(deps, post, "one request per lane", `while #${other.entry.sequence} is under way`);
    if (other.entry.isTest) tests += 1;
    else reviews += 1;
  }
  const [running, limit] = post.entry.isTest
    ? [tests, PARALLEL_TESTS]
    : [reviews, PARALLEL_REVIEWS];
  if (running >= limit) say(deps, post, "bounded requests", `beside ${running} others`);
};

/** Checks that every earlier entry of the lane is settled, or was answered with 2xx to this very process. */
const checkOrder: Check = (deps, post) => {
  const { entry, subscription, dispatcherId } = post;
  if (entry.isTest) return;
  let ahead = 0;
  for (const before of queueOf(subscription)) {
    if (before.sequence >= entry.sequence) break;
    if (before.isTest || !shareLane(post.ordering, before, entry)) continue;
    ahead += 1;
    if (!deps.watch.acceptedBy.get(before.sequence)?.has(dispatcherId))
      say(deps, post, "order", `before #${before.sequence} is done`);
  }
  if (ahead >= SEND_AHEAD)
    say(deps, post, "bounded send-ahead", `ahead of ${ahead} uncommitted entries`);
};

/** Checks that no attempt is made twice, except that other processes repeat a few entries after a crash. */
const checkRepeat: Check = (deps, post) => {
  const { entry, attempt } = post;
  for (const earlier of deps.watch.posts.get(entry.sequence) ?? []) {
    if (earlier.attempt !== attempt) continue;
    if (earlier.blame === "theirs" && earlier.dispatcherId === post.dispatcherId)
      say(deps, post, "a failure of the receiver counts", "again, as if it had not failed");
    if (earlier.leftMs === undefined) continue;
    if (earlier.dispatcherId === post.dispatcherId && earlier.outcome !== "aborted")
      say(deps, post, "no repeat", "a second time");
    const key = `${earlier.dispatcherId} ${laneOf(earlier.ordering, entry)}`;
    let repeated = deps.watch.repeated.get(key);
    if (repeated === undefined) deps.watch.repeated.set(key, (repeated = new Set()));
    repeated.add(entry.sequence);
    if (repeated.size > SEND_AHEAD + 1)
      say(deps, post, "bounded repeats", `the ${repeated.size}th of ${earlier.dispatcherId}`);
  }
};

/** Returns the time at which the entry became the head of its lane, or one more request was allowed. */
function headSinceMs({ watch }: CheckDeps, { ordering, entry }: Post): number {
  const progressMs = watch.laneProgressMs.get(laneOf(ordering, entry)) ?? 0;
  const laneMs = Math.max(progressMs, watch.dispatchedMs);
  if (entry.isTest) return Math.max(laneMs, watch.testsSaturatedMs);
  return ordering === "review" ? Math.max(laneMs, watch.saturatedMs) : watch.progressMs;
}

/** The number of rows in the loads that a load waits for on a slow server. */
const COSTLY_ROWS = 4_000;

/** Checks that the head of a lane is sent on time if no fault occurred for a while. */
const checkPunctual: Check = (deps, post) => {
  const { entry, subscription } = post;
  if (deps.world.settings.limits !== LIMITS) return;
  const isRetry = entry.dueAtMs !== null;
  const dueMs = isRetry ? (entry.dueAtMs ?? 0) - EPOCH_MS - deps.world.stepMs : entry.visibleMs;
  const headMs = headSinceMs(deps, post);
  const readyMs = Math.max(dueMs, headMs, subscription.changedMs, deps.watch.hinderedMs);
  const lateMs = deps.world.nowMs - readyMs;
  // A commit that waited for a row of another subscription is split until only that one is left.
  const splitMs = deps.world.nowMs - deps.world.hinderedMs < SPLIT_EXCUSE_MS ? SPLIT_MS : 0;
  // A load of another subscription may come first, and rows take time in some runs.
  const costMs = deps.world.settings.rowMs * COSTLY_ROWS;
  const [invariant, limitMs] = isRetry ? ["punctual", RETRY_LATE_MS] : ["prompt", FRESH_LATE_MS];
  // The new ordering holds once every request of the old one has ended.
  const { troubleMs, movedMs } = deps.world;
  const calmSinceMs = Math.max(troubleMs, movedMs + LATE_MOVE_MS, deps.watch.reorderedMs + CALM_MS);
  if (lateMs > limitMs + splitMs + costMs && calmSinceMs < readyMs - CALM_MS)
    say(deps, post, invariant, `${Math.round(lateMs)} ms late`);
};

const CHECKS: readonly Check[] = [
  checkEntry,
  checkSettings,
  checkErased,
  checkOverlap,
  checkOrder,
  checkRepeat,
  checkNumbers,
  checkPunctual,
];
