import type { AttemptRecord } from "../../dispatcher/store/attempt.ts";
import { ATTEMPTS } from "../../dispatcher/actor/decide.ts";
import type { CheckDeps } from "./check-post.ts";
import type { OutboxRow, SubscriptionRow } from "./tables.ts";
import type { Post } from "./watch.ts";

interface Commit {
  readonly dispatcherId: string;
  readonly record: AttemptRecord;
  readonly subscription: SubscriptionRow;
  /** The entry is there, and at the attempt that the record is about. */
  readonly moves: boolean;
  /** The record is there already: the answer to its commit was lost. */
  readonly isRepeat: boolean;
}

/** Of the record of a POST: there was such a POST, the decision follows from it, and its entry was still there. */
export function checkRecord(deps: CheckDeps, commit: Commit): void {
  const { record, subscription, moves, isRepeat, dispatcherId } = commit;
  const which = `${dispatcherId} commits ${subscription.id}#${record.sequence}/${record.attempt}`;
  const say = (invariant: string, what: string) =>
    deps.world.violate(invariant, `${which} ${record.decision.kind} ${what}`, subscription.id);
  if (!deps.tables.dispatchers.has(dispatcherId)) say("fencing", "after it was declared dead");
  const post = findPost(deps, commit);
  // An attempt that failed before its first byte left was one all the same.
  if (post === undefined || (post.leftMs === undefined && post.outcome !== "failed"))
    return say("no invented record", "without a POST");
  const expected = expectedDecision(post, deps.world.settings.retryDelaysMs);
  const dueAtMs = record.decision.kind === "retry" ? record.decision.dueAt.getTime() : undefined;
  if (record.decision.kind !== expected.kind || dueAtMs !== expected.dueAtMs)
    say("schedule", `due ${dueAtMs}; it should be ${expected.kind} due ${expected.dueAtMs}`);
  const isVain = !moves && !isRepeat && record.decision.kind !== "interrupted";
  const state = subscription.settled.get(record.sequence)?.state;
  if (isVain && state !== "skipped") say("no outcome in vain", `of an entry that is ${state}`);
}

function findPost({ watch }: CheckDeps, { record, dispatcherId }: Commit): Post | undefined {
  return watch.posts
    .get(record.sequence)
    ?.find(
      (post) =>
        post.dispatcherId === dispatcherId &&
        post.attempt === record.attempt &&
        post.startedWallMs === record.startedAt.getTime() &&
        post.ended,
    );
}

function expectedDecision(
  post: Post,
  retryDelaysMs: readonly number[],
): { kind: string; dueAtMs: number | undefined } {
  if (post.outcome === "accepted") return { kind: "delivered", dueAtMs: undefined };
  if (post.outcome === "aborted") return { kind: "interrupted", dueAtMs: undefined };
  if (post.outcome === "gone" || post.attempt >= ATTEMPTS)
    return { kind: "failed", dueAtMs: undefined };
  const delayMs = retryDelaysMs[post.attempt - 1] ?? 0;
  return { kind: "retry", dueAtMs: post.endedWallMs + delayMs };
}

/** A batch has each event once, review by review, and in order within each. */
export function checkDispatch(
  deps: CheckDeps,
  subscription: SubscriptionRow,
  entries: readonly OutboxRow[],
): void {
  const say = (what: string) =>
    deps.world.violate("batch", `${subscription.id}: ${what}`, subscription.id);
  if (subscription.state !== "active") say(`dispatched while ${subscription.state}`);
  const seen = new Set<number | null>();
  let last: OutboxRow | undefined;
  for (const entry of entries) {
    if (deps.watch.dispatched.has(entry.eventId)) say(`${entry.eventId} a second time`);
    if (entry.reviewId === last?.reviewId) {
      if ((entry.history?.id ?? 0) <= (last.history?.id ?? 0)) say(`${entry.eventId} out of order`);
    } else if (seen.has(entry.reviewId)) say(`review ${entry.reviewId} in two jobs`);
    seen.add(entry.reviewId);
    last = entry;
  }
}
