// Contains one raw statement (db/statement.ts): the rule of the sign-in lock must be one statement.

import { and, eq, gt, or, sql } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { companies } from "../../../db/schema/companies.ts";
import { signInLocks, ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import { prepared } from "../../../db/session.ts";
import { instant, statement, value } from "../../../db/statement.ts";
import { isPartnerOfCompany, isTenantActive, partners } from "../../../db/conditions.ts";
import { addMs } from "../../lib/clock.ts";
import { FORGET_FAILURES_AFTER_MS, type SignInLock, WRONG_ATTEMPTS_TO_LOCK } from "../decide.ts";

type LockTime = Pick<SignInLock, "lockedUntil">;

const { emailDigest, failures, locks, lockedUntil } = signInLocks;

const lockTimes = prepared({ digest: emailDigest }, (db, { digest }) =>
  db.select({ lockedUntil }).from(signInLocks).where(eq(emailDigest, digest)),
);

export async function findLockTime(db: DbOrTx, digest: string): Promise<LockTime | undefined> {
  const [row] = await lockTimes(db, { digest });
  return row;
}

const wrongAttempt = statement({
  name: "settleWrongAttempt",
  // Drizzle's builder cannot set several columns from one subselect, which lets the rule be written once.
  params: {
    digest: emailDigest,
    now: instant,
    forgottenBefore: instant,
    schedule: value("integer[]"),
  },
  columns: { lockedUntil },
  text: ({ digest, now, forgottenBefore, schedule }) => sql`
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
                        ${schedule}::int[] as schedule) as rule
    )
    where l.locked_until is null or l.locked_until <= ${now}
    returning locked_until as "lockedUntil"`,
});

/**
 * Applies the rule of `decideWrongAttempt` in one statement, so that each of several parallel attempts sees the ones
 * before it. Returns the row, with `lockedUntil` set if this attempt caused a lock. Returns undefined if sign-in was
 * locked already; then nothing was counted.
 */
export async function settleWrongAttempt(
  tx: DbOrTx,
  attempt: { digest: string; now: Date; scheduleS: readonly number[] },
): Promise<LockTime | undefined> {
  const { digest, now, scheduleS } = attempt;
  const forgottenBefore = addMs(now, -FORGET_FAILURES_AFTER_MS);
  const [row] = await tx.run(wrongAttempt, { digest, now, forgottenBefore, schedule: scheduleS });
  return row;
}

const rightAttempt = prepared({ digest: emailDigest, now: instant }, (db, { digest, now }) => {
  const isLocked = gt(lockedUntil, now);
  return db
    .update(signInLocks)
    .set({
      failures: sql`case when ${isLocked} then ${failures} else 0 end`,
      locks: sql`case when ${isLocked} then ${locks} else 0 end`,
      lockedUntil: sql`case when ${isLocked} then ${lockedUntil} end`,
    })
    .where(and(eq(emailDigest, digest), or(gt(failures, 0), gt(locks, 0))))
    .returning({ lockedUntil });
});

/**
 * Resets the wrong attempts before a correct one. If sign-in is locked, the row stays unchanged and is returned: a
 * correct password does not lift a lock.
 */
export async function settleRightAttempt(
  tx: DbOrTx,
  attempt: { digest: string; now: Date },
): Promise<LockTime | undefined> {
  const [row] = await rightAttempt(tx, attempt);
  return row;
}

export async function forgetLock(tx: DbOrTx, digest: string): Promise<void> {
  await tx.delete(signInLocks).where(eq(emailDigest, digest));
}

interface DomainPolicy {
  readonly connectionId: string;
  readonly passwordLogin: boolean;
}

const domainPolicies = prepared({ domain: ssoDomains.domain }, (db, { domain }) =>
  db
    .select({ connectionId: ssoConnections.id, passwordLogin: ssoConnections.passwordLogin })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .innerJoin(companies, eq(companies.id, ssoConnections.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(ssoDomains.domain, domain), ssoConnections.isActive, isTenantActive)),
);

/**
 * Returns how addresses of this domain sign in; undefined means with a password, as addresses of all other domains
 * do.
 */
export async function findDomainPolicy(
  db: DbOrTx,
  domain: string,
): Promise<DomainPolicy | undefined> {
  const [policy] = await domainPolicies(db, { domain });
  return policy;
}
