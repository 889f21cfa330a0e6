import type { DbOrTx } from "../../../db/client.ts";
import { addMs } from "../../lib/clock.ts";
import { FORGET_FAILURES_AFTER_MS, WRONG_ATTEMPTS_TO_LOCK, type SignInLock } from "../decide.ts";

type LockTime = Pick<SignInLock, "lockedUntil">;

export async function findLockTime(db: DbOrTx, digest: string): Promise<LockTime | undefined> {
  const [row] = await db.sql<LockTime[]>`
    select locked_until as "lockedUntil" from sign_in_locks where email_digest = ${digest}`;
  return row;
}

/**
 * `decideWrongAttempt` in one statement, so that of any number of parallel attempts each sees the ones before it.
 * Answers the lock that this attempt brought about, if any; undefined if sign-in was locked and nothing was counted.
 */
export async function settleWrongAttempt(
  tx: DbOrTx,
  attempt: { digest: string; now: Date; scheduleS: readonly number[] },
): Promise<LockTime | undefined> {
  const { digest, now, scheduleS } = attempt;
  const forgottenBefore = addMs(now, -FORGET_FAILURES_AFTER_MS);
  const schedule = `{${scheduleS.join(",")}}`;
  const [row] = await tx.sql<LockTime[]>`
    insert into sign_in_locks as l (email_digest, failures, locks, locked_until, last_failure_at)
    values (${digest}, 1, 0, null, ${now})
    on conflict (email_digest) do update set (failures, locks, locked_until, last_failure_at) = (
      select
        case when locks_now then 0 else known.failures + 1 end,
        case when locks_now then known.locks + 1 else known.locks end,
        case when locks_now then ${now}::timestamptz + interval '1 second'
          * schedule[least(known.locks + 1, cardinality(schedule))] end,
        ${now}::timestamptz
      from
        (select case when l.last_failure_at <= ${forgottenBefore} then 0 else l.failures end as failures,
                case when l.last_failure_at <= ${forgottenBefore} then 0 else l.locks end as locks) as known,
        lateral (select known.failures + 1 >= ${WRONG_ATTEMPTS_TO_LOCK}::int as locks_now,
                        ${schedule}::text::int[] as schedule) as rule
    )
    where l.locked_until is null or l.locked_until <= ${now}
    returning locked_until as "lockedUntil"`;
  return row;
}

/**
 * Forgets the wrong answers before a right one. Answers the lock if there is one, and then leaves everything as it is:
 * a right password does not open a lock.
 */
export async function settleRightAttempt(
  tx: DbOrTx,
  attempt: { digest: string; now: Date },
): Promise<LockTime | undefined> {
  const { digest, now } = attempt;
  const [row] = await tx.sql<LockTime[]>`
    update sign_in_locks set
      failures = case when locked_until > ${now} then failures else 0 end,
      locks = case when locked_until > ${now} then locks else 0 end,
      locked_until = case when locked_until > ${now} then locked_until end
    where email_digest = ${digest} and (failures > 0 or locks > 0)
    returning locked_until as "lockedUntil"`;
  return row;
}

export async function forgetLock(tx: DbOrTx, digest: string): Promise<void> {
  await tx.sql`delete from sign_in_locks where email_digest = ${digest}`;
}
