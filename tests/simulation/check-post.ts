import { LIMITS } from "../../dispatcher/delivery/limits.ts";
import { MAX_UNRECORDED, SEND_AHEAD } from "../../dispatcher/actor/lane.ts";
import { PARALLEL_REVIEWS } from "../../dispatcher/actor/state.ts";
import { ATTEMPTS } from "../../dispatcher/actor/decide.ts";
import { queueOf } from "./log.ts";
import type { Tables } from "./tables.ts";
import { laneOf, shareLane, type Post, type Watch } from "./watch.ts";
import { EPOCH_MS, STEP_EXCUSE_MS, type World } from "./world.ts";

export interface CheckDeps {
  readonly world: World;
  readonly tables: Tables;
  readonly watch: Watch;
}

/** How many tests the actor allows at once, said here again, so that a change of it is noticed. */
export const PARALLEL_TESTS = 4;
/** SETTINGS_MAX_AGE_MS of the actor, CLOCKS_APART_MS of a suspension, and the rounding to the millisecond. */
const SETTINGS_AGE_MS = 1_501;
/** For how long nothing must have gone wrong before lateness counts. */
const CALM_MS = 20_000;
/** How long after a process came or went a shard may still move in which a request hangs: PATIENCE_MS and a bit. */
const LATE_MOVE_MS = 25_000;
/** How late an idle dispatcher may be; what was changed has to be loaded within this time too. */
const RETRY_LATE_MS = 250;
const FRESH_LATE_MS = 250;
/** How long the splitting may take, and for how long after a row was locked or a record refused that counts. */
const SPLIT_MS = 1_500;
const SPLIT_EXCUSE_MS = 4_000;

type Check = (deps: CheckDeps, post: Post) => void;

/**
 * Only the holder of the shard sends: an owner stops before anybody can take over. It has a bounded number of attempts
 * of a subscription, over all lanes, whose records are not committed.
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

/** Everything that has to be true when a POST begins. */
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
  // Decided to be skipped, whether it stands in the outbox or not.
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

/** After a delete, a disabling or a change, only what a load from before has answered is sent, and not for long. */
const checkSettings: Check = (deps, post) => {
  const { subscription, process } = post;
  const read = deps.watch.settings.get(process);
  const ageMs = deps.world.nowMs - (read?.handedMs ?? Number.NEGATIVE_INFINITY);
  if (ageMs > SETTINGS_AGE_MS && deps.world.nowMs - deps.world.steppedMs > STEP_EXCUSE_MS)
    say(deps, post, "settings of the moment", `with settings ${Math.round(ageMs)} ms old`);
  if (subscription.state !== "active" && subscription.changedMs <= (read?.snapshotMs ?? 0))
    say(deps, post, "only to the active", `which is ${subscription.state}`);
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

/** Every entry before it in its lane is settled, or was answered 2xx to this very process. */
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

/** Nobody makes the same attempt twice; after a death others repeat it, and of few entries. */
const checkRepeat: Check = (deps, post) => {
  const { entry, attempt } = post;
  for (const earlier of deps.watch.posts.get(entry.sequence) ?? []) {
    if (earlier.attempt !== attempt || earlier.leftMs === undefined) continue;
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

/** When the entry became the head of its lane, or when one more request was allowed. */
function headSinceMs({ watch }: CheckDeps, { ordering, entry }: Post): number {
  const progressMs = watch.laneProgressMs.get(laneOf(ordering, entry)) ?? 0;
  const laneMs = Math.max(progressMs, watch.dispatchedMs);
  if (entry.isTest) return Math.max(laneMs, watch.testsCrowdedMs);
  return ordering === "review" ? Math.max(laneMs, watch.crowdedMs) : watch.progressMs;
}

/** Of the loads that one waits for on a slow server. */
const COSTLY_ROWS = 4_000;

/** Where nothing has gone wrong for a while, the head of a lane is sent on time. */
const checkPunctual: Check = (deps, post) => {
  const { entry, subscription } = post;
  if (deps.world.settings.limits !== LIMITS) return;
  const isRetry = entry.dueAtMs !== null;
  const dueMs = isRetry ? (entry.dueAtMs ?? 0) - EPOCH_MS - deps.world.stepMs : entry.visibleMs;
  const headMs = headSinceMs(deps, post);
  const readyMs = Math.max(dueMs, headMs, subscription.changedMs, deps.watch.hinderedMs);
  const lateMs = deps.world.nowMs - readyMs;
  // A commit that waited for a row of another subscription is split until that one is alone.
  const splitMs = deps.world.nowMs - deps.world.hinderedMs < SPLIT_EXCUSE_MS ? SPLIT_MS : 0;
  // Where rows cost time, a load of another subscription may come before.
  const costMs = deps.world.settings.rowMs * COSTLY_ROWS;
  const [invariant, limitMs] = isRetry ? ["punctual", RETRY_LATE_MS] : ["prompt", FRESH_LATE_MS];
  // The new ordering holds once everything that was sent in the old one has ended.
  const { troubleMs, movedMs } = deps.world;
  const calmSinceMs = Math.max(troubleMs, movedMs + LATE_MOVE_MS, deps.watch.reorderedMs + CALM_MS);
  if (lateMs > limitMs + splitMs + costMs && calmSinceMs < readyMs - CALM_MS)
    say(deps, post, invariant, `${Math.round(lateMs)} ms late`);
};

const CHECKS: readonly Check[] = [
  checkEntry,
  checkSettings,
  checkOverlap,
  checkOrder,
  checkRepeat,
  checkPunctual,
];
