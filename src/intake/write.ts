import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { isLockTimeout, isUniqueViolation } from "../../db/errors.ts";
import type { RecordedAction } from "../outbox/event.ts";
import { recordActions } from "../outbox/queries.ts";
import type { Wake, Waker } from "../outbox/schedule.ts";
import type { Decided } from "./admit.ts";
import { type Draft, outcomeOf } from "./decide.ts";
import { type NoticeDeps, queueNotices } from "./notices.ts";
import { claimActions, insertNew, updateReviews, updateSites } from "./queries/write.ts";

/**
 * Reports that another transaction has inserted or locked a row that this one would write. Nothing was written, so the
 * transaction can be repeated.
 */
export class Collision extends Error {}

/** The subscriptions to wake after a commit, and whether mails were queued. */
interface WrittenBatch {
  readonly wakes: readonly Wake[];
  readonly isMailed: boolean;
}

/**
 * Wakes dispatchers and the mailer. It must run after the commit, because other transactions do not see the entries and
 * mails before the commit.
 */
export function wakeAfter(schedule: Waker, { wakes, isMailed }: WrittenBatch): void {
  schedule.wake(wakes);
  if (isMailed) schedule.wakeMailer();
}

/** Gives each action a new event id. */
export const withIds = (actions: Draft["actions"], now: Date): RecordedAction[] =>
  actions.map((one) => ({ eventId: ulid(now.getTime()), ...one }));

/**
 * Writes the decisions about requests, with the last statements of the transaction that read their state. Returns the
 * subscriptions to wake after the commit.
 */
export async function writeAll(
  tx: Tx,
  deps: NoticeDeps,
  { draft, claims }: Decided,
  now: Date,
): Promise<WrittenBatch> {
  const { notices, actions, created, reviews, sites } = outcomeOf(draft);
  const finish = async () => {
    await queueNotices(tx, deps, notices, now);
    return recordActions(tx, withIds(actions, now), now);
  };
  // The statements are pipelined together with the commit, unless mails must be sealed first.
  const [, , , , wakes] = await Promise.all([
    insertNew(tx, { claims: claims.ofProviders, created, now }),
    claimActions(tx, claims.ofServices, now),
    updateReviews(tx, reviews),
    updateSites(tx, sites),
    finish(),
  ]).catch((error: unknown) => {
    const isCollision = isUniqueViolation(error) || isLockTimeout(error);
    throw isCollision ? new Collision("", { cause: error }) : error;
  });
  return { wakes, isMailed: notices.length > 0 };
}
