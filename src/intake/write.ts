import { ulid } from "ulid";

import type { Tx } from "../../db/client.ts";
import { isLockTimeout, isUniqueViolation } from "../../db/errors.ts";
import type { SecretBox } from "../lib/secret-box.ts";
import type { RecordedAction } from "../outbox/event.ts";
import { recordActions } from "../outbox/queries.ts";
import type { Wake, Waker } from "../outbox/schedule.ts";
import type { Decided } from "./admit.ts";
import { type Draft, outcomeOf } from "./decide.ts";
import { queueNotices } from "./notices.ts";
import { claimActions, insertNew, updateReviews, updateSites } from "./queries/write.ts";

/** Another transaction claims, inserts or locks a row that this one writes. It has written nothing and can be repeated. */
export class Collision extends Error {}

/** Whom to wake after a commit: dispatchers, and the mailer if mails are queued. */
interface Written {
  readonly wakes: readonly Wake[];
  readonly isMailed: boolean;
}

/** Wakes after the commit, because an earlier wake could find the entries still invisible. */
export function wakeAfter(schedule: Waker, { wakes, isMailed }: Written): void {
  schedule.wake(wakes);
  if (isMailed) schedule.wakeMailer();
}

/** Returns actions with new event ids. */
export const withIds = (actions: Draft["actions"], now: Date): RecordedAction[] =>
  actions.map((one) => ({ eventId: ulid(now.getTime()), ...one }));

/**
 * Writes what was decided about requests, with the last statements of the transaction that has read their state. Returns whom
 * to wake after the commit.
 */
export async function writeAll(
  tx: Tx,
  deps: { readonly box: SecretBox },
  { draft, claims }: Decided,
  now: Date,
): Promise<Written> {
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
