import type { AttemptRecord } from "../../dispatcher/store/attempt-queries.ts";
import { shareLane } from "../verdicts/lanes.ts";
import { outcomeAfter } from "../verdicts/outcome.ts";
import type { CheckDeps } from "./check-post.ts";
import { queueOf } from "./log.ts";
import type { OutboxRow, SubscriptionRow } from "./tables.ts";
import type { Post } from "./watch.ts";
import { EPOCH_MS, STEP_EXCUSE_MS } from "./world.ts";

interface Commit {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  readonly subscription: SubscriptionRow;
  /** The entry exists and is at the attempt of the record. */
  readonly moves: boolean;
  /** The record exists already, because the response to its commit was lost. */
  readonly isRepeat: boolean;
  /** The due time of the retry, if there is one. */
  readonly dueAtMs: number | null;
}

/** The time after a change of the ordering for which entries may be under way in lanes of the old ordering. */
const REORDER_EXCUSE_MS = 60_000;

/** Checks the record of a POST: the POST exists, the decision follows from its result, and its entry existed. */
export function checkRecord(deps: CheckDeps, commit: Commit): void {
  const { record, subscription, moves, isRepeat, dispatcherId } = commit;
  const say = (invariant: string, what: string) => {
    const which = `${dispatcherId} commits ${subscription.id}#${record.sequence}/${record.attempt}`;
    deps.world.violate(invariant, `${which} ${record.decision.kind} ${what}`, subscription.id);
  };
  if (!deps.tables.dispatchers.has(dispatcherId)) say("fencing", "after it was declared dead");
  const post = findPost(deps, commit);
  // An attempt that failed before its first byte is an attempt, too.
  if (post === undefined || (post.leftMs === undefined && post.outcome !== "failed"))
    return say("no invented record", "without a POST");
  if (post.blame === "ours") say("nothing counts in an outage of ours", "a failure of ours");
  const expected = expectedDecision(post, deps.world.settings.retryDelaysMs);
  const delayMs = record.decision.kind === "retry" ? record.decision.delayMs : undefined;
  if (record.decision.kind !== expected.kind || delayMs !== expected.delayMs)
    say("schedule", `after ${delayMs}; it should be ${expected.kind} after ${expected.delayMs}`);
  if (commit.dueAtMs !== null) checkDue(deps, { ...commit, post, dueAtMs: commit.dueAtMs }, say);
  if (!isRepeat) checkFlagged(deps, { ...commit, post }, say);
  post.recorded = true;
  deps.watch.unrecorded.get(dispatcherId)?.delete(post);
  if (moves && isEnd(record) && overtakes(commit, post))
    say("committed in order", "before those that it was sent after");
  const isVain = !moves && !isRepeat && record.decision.kind !== "interrupted";
  const state = subscription.settled.get(record.sequence)?.state;
  // A success counts, although its entry was skipped while the POST was under way.
  if (isVain && (state !== "skipped" || record.decision.kind === "delivered"))
    say("no outcome in vain", `of an entry that is ${state}`);
}

function isEnd({ decision }: AttemptRecord): boolean {
  return decision.kind === "delivered" || decision.kind === "failed";
}

/** Whether an earlier entry of the lane is not settled. */
function overtakes({ record, subscription }: Commit, { entry, ordering }: Post): boolean {
  if (entry.isTest) return false;
  for (const row of queueOf(subscription)) {
    if (row.sequence >= record.sequence) break;
    if (!row.isTest && shareLane(ordering, row, entry)) return true;
  }
  return false;
}

function findPost({ watch }: CheckDeps, { record, dispatcherId }: Commit): Post | undefined {
  // An earlier POST may have the same time after a step back of the clock.
  return watch.posts
    .get(record.sequence)
    ?.findLast(
      (post) =>
        post.dispatcherId === dispatcherId &&
        post.attempt === record.attempt &&
        post.startedWallMs === record.startedAt.getTime() &&
        post.ended,
    );
}

type Say = (invariant: string, what: string) => void;

/**
 * Checks that a retry is due its delay after the end of the POST, by the clock of PostgreSQL. The duration of the
 * commit may be added.
 */
function checkDue(
  { world }: CheckDeps,
  { record, post, dueAtMs }: Commit & { post: Post; dueAtMs: number },
  say: Say,
): void {
  const delayMs = record.decision.kind === "retry" ? record.decision.delayMs : 0;
  if (world.steppedMs > post.endedMs) return;
  const earliestMs = EPOCH_MS + world.stepMs + post.endedMs + delayMs;
  if (dueAtMs < earliestMs - 2 || dueAtMs > world.postgresMs + delayMs + 1)
    say("schedule", `due at ${dueAtMs}, ${Math.round(dueAtMs - earliestMs)} ms from its delay`);
}

/**
 * Checks that the record of a repeat is flagged as possible, and that other records are flagged only if a crashed
 * process may have made the attempt.
 */
function checkFlagged(
  { world, watch }: CheckDeps,
  { record, post, subscription }: Commit & { post: Post },
  say: Say,
): void {
  const { sequence, attempt, round, possiblyRepeated } = record;
  // Loads of the new ordering do not show how many entries come before one in a lane of the former ordering.
  const isReordered = world.nowMs - watch.reorderedMs < REORDER_EXCUSE_MS;
  // Their marks last until the entries are recorded.
  const isMarkedByOrder = isReordered || watch.reorderedMs > watch.expiredMs;
  if (possiblyRepeated && !watch.mayRepeat.has(sequence) && !isMarkedByOrder)
    say("possible repeats flagged", "as a possible repeat, which it cannot be");
  const which = `${sequence}/${round}/${attempt}`;
  if (possiblyRepeated) watch.flagged.add(which);
  // One flagged record is enough, also if its attempt was aborted and is made once more.
  if (watch.flagged.has(which) || isReordered) return;
  // The first sweep does not see a subscription that is disabled during the takeover.
  if (!watch.wasActive || subscription.changedMs > watch.expiredMs) return;
  const unrecorded = watch.posts
    .get(sequence)
    ?.find(
      (one) =>
        one.dispatcherId !== post.dispatcherId &&
        one.attempt === attempt &&
        one.entry.round === round &&
        one.leftMs !== undefined &&
        !one.recorded,
    );
  // A process that has not noticed a step back yet may send entries that are not due for its successor.
  if (unrecorded === undefined || world.steppedMs + STEP_EXCUSE_MS > unrecorded.startedMs) return;
  // The first entries of the former lanes may not be the first ones of the present lanes.
  if (watch.reorderedMs > unrecorded.startedMs || unrecorded.ordering !== post.ordering) return;
  if (!waitedSince(watch, unrecorded))
    say("possible repeats flagged", `as if ${unrecorded.dispatcherId} had not sent it`);
}

/**
 * Whether the entry waited behind a head whose repeat failed. Such an entry is not known any more if the shard moves
 * again meanwhile, because a sweep does not show entries that are not due (docs/decisions.md).
 */
function waitedSince({ posts }: CheckDeps["watch"], sent: Post): boolean {
  const failed = (one: Post) =>
    one.startedMs > sent.startedMs && one.recorded && one.outcome !== "accepted";
  return posts
    .entries()
    .some(([sequence, own]) => sequence < sent.entry.sequence && own.some(failed));
}

function expectedDecision(
  { outcome, attempt }: Post,
  retryDelaysMs: readonly number[],
): { kind: string; delayMs: number | undefined } {
  if (outcome === "aborted") return { kind: "interrupted", delayMs: undefined };
  const isKnown = outcome === "accepted" || outcome === "gone";
  const kind = outcomeAfter(isKnown ? outcome : "other", attempt);
  return { kind, delayMs: kind === "retry" ? (retryDelaysMs[attempt - 1] ?? 0) : undefined };
}

/** Checks that a batch has each event once, review by review and in order within each, over all its chunks. */
export function checkDispatch(
  deps: CheckDeps,
  subscription: SubscriptionRow,
  {
    entries,
    windowId,
    readMs,
  }: {
    readonly entries: readonly OutboxRow[];
    readonly windowId: string;
    readonly readMs: number;
  },
): void {
  const say = (what: string) =>
    deps.world.violate("batch", `${subscription.id}: ${what}`, subscription.id);
  if (subscription.state !== "active") say(`dispatched while ${subscription.state}`);
  const { watch } = deps;
  if (watch.window?.id !== windowId)
    watch.window = { id: windowId, openedMs: readMs, seen: new Set(), last: undefined };
  const { openedMs } = watch.window;
  const { seen } = watch.window;
  let { last } = watch.window;
  for (const entry of entries) {
    if (deps.watch.dispatched.has(entry.eventId)) say(`${entry.eventId} a second time`);
    // An event that commits between two chunks may be in the batch; events of one review never overtake each other.
    if ((watch.batchedMs.get(entry.eventId) ?? 0) > openedMs) continue;
    if (entry.reviewId === last?.reviewId) {
      if ((entry.history?.id ?? 0) <= (last.history?.id ?? 0)) say(`${entry.eventId} out of order`);
    } else if (seen.has(entry.reviewId)) say(`review ${entry.reviewId} in two jobs`);
    seen.add(entry.reviewId);
    last = entry;
  }
  watch.window.last = last;
}
