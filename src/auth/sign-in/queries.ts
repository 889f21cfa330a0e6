import { and, eq, gt, not, notExists, or, sql, type SQL } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies, plans, users } from "../../../db/schema/companies.ts";
import { signInLocks, ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import { authenticationEvents } from "../../../db/schema/tokens.ts";
import { instant, statement, value } from "../../../db/statement.ts";
import { addMs } from "../../lib/clock.ts";
import { FORGET_FAILURES_AFTER_MS, type SignInLock, WRONG_ATTEMPTS_TO_LOCK } from "../decide.ts";
import type { Digest } from "../../lib/kind-key.ts";
import { emailDomain } from "../../lib/email.ts";
import { isPartnerOfCompany, isTenantActive, isUserActive, partners } from "../access/queries.ts";

/** Returns the SQL condition that no identity provider of the user's company forbids passwords for this domain. */
export function takesPassword(db: Pick<DbOrTx, "select">, domain: string): SQL {
  const refusing = db
    .select({ domain: ssoDomains.domain })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .where(
      and(
        eq(ssoDomains.domain, domain),
        eq(ssoConnections.companyId, users.companyId),
        ssoConnections.isActive,
        not(ssoConnections.passwordLogin),
      ),
    );
  return notExists(refusing);
}

/** The user with an email, and the facts that decide whether this user can sign in. */
export interface SignInUser {
  readonly id: number;
  readonly companyId: number;
  /** The id of the tenant, which is the partner itself or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /**
   * The hash of the user's password. Null for users who can sign in only through an identity provider: they have no
   * password, or their domain allows none.
   */
  readonly passwordHash: string | null;
  /** Whether the user, the company and the company's partner are all active. */
  readonly isActive: boolean;
}

export async function findSignInUser(db: DbOrTx, email: string): Promise<SignInUser | undefined> {
  const [row] = await db
    .select({
      id: users.id,
      companyId: users.companyId,
      companyType: companies.type,
      companyPartnerId: companies.partnerId,
      passwordHash: users.passwordHash,
      takesPassword: takesPassword(db, emailDomain(email)).mapWith(Boolean),
      isActive: isUserActive,
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(eq(users.email, email));
  if (row === undefined) return undefined;
  const { id, companyId, isActive } = row;
  const partnerId = row.companyType === "partner" ? companyId : row.companyPartnerId;
  const passwordHash = row.takesPassword ? row.passwordHash : null;
  return { id, companyId, partnerId, passwordHash, isActive };
}

/**
 * Replaces a password hash by another hash of the same password, unless the password has been changed since `from` was
 * read.
 */
export async function replaceHash(
  db: DbOrTx,
  { userId, from, to }: { userId: number; from: string; to: string },
): Promise<void> {
  await db
    .update(users)
    .set({ passwordHash: to })
    .where(and(eq(users.id, userId), eq(users.passwordHash, from)));
}

/** The key of a row in `sign_in_locks`, which locks the sign-ins with an email or the app codes of a user. */
type LockKey = Digest<"email" | "second-factor">;
type LockTime = Pick<SignInLock, "lockedUntil">;

const { emailDigest, failures, locks, lockedUntil } = signInLocks;

export async function findLockTime(db: DbOrTx, digest: LockKey): Promise<LockTime | undefined> {
  const [row] = await db.select({ lockedUntil }).from(signInLocks).where(eq(emailDigest, digest));
  return row;
}

const wrongAttempt = statement({
  name: "settleWrongAttempt",
  // Raw SQL, because Drizzle's query builder cannot set several columns from one subselect. The subselect avoids
  // repeating the rule for each column.
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
 * Counts a wrong password (contract 4.8): it is not counted while sign-in is locked, and the fifth wrong password in a
 * row locks sign-in. 24 h after the last wrong password, both counters start from zero again. One statement applies the
 * rule, so that each of several parallel sign-ins sees the counts of those before it. Returns the row of the sign-in lock, with `lockedUntil` set if this
 * wrong password caused a lock. Returns undefined if sign-in was locked already; then nothing was counted.
 */
export async function settleWrongAttempt(
  tx: DbOrTx,
  attempt: { digest: LockKey; now: Date; scheduleS: readonly number[] },
): Promise<LockTime | undefined> {
  const { digest, now, scheduleS } = attempt;
  const forgottenBefore = addMs(now, -FORGET_FAILURES_AFTER_MS);
  const [row] = await tx.run(wrongAttempt, { digest, now, forgottenBefore, schedule: scheduleS });
  return row;
}

/**
 * Resets the count of wrong passwords after a correct password. If sign-in is locked, the lock's row stays unchanged
 * and is returned: a correct password does not lift a lock.
 */
export async function settleRightAttempt(
  tx: DbOrTx,
  { digest, now }: { digest: LockKey; now: Date },
): Promise<LockTime | undefined> {
  const isLocked = gt(lockedUntil, now);
  const [row] = await tx
    .update(signInLocks)
    .set({
      failures: sql`case when ${isLocked} then ${failures} else 0 end`,
      locks: sql`case when ${isLocked} then ${locks} else 0 end`,
      lockedUntil: sql`case when ${isLocked} then ${lockedUntil} end`,
    })
    .where(and(eq(emailDigest, digest), or(gt(failures, 0), gt(locks, 0))))
    .returning({ lockedUntil });
  return row;
}

export async function forgetLock(tx: DbOrTx, digest: LockKey): Promise<void> {
  await tx.delete(signInLocks).where(eq(emailDigest, digest));
}

/** Table alias for the company whose branding is shown: an account's partner, or any other company itself. */
const brands = alias(companies, "brands");

const ownStores = sql`case when ${users.role} = 'location_user'
    then array(select store_id from user_stores where user_id = ${users.id} order by store_id)
  else array(select id from stores where account_id = ${companies.id} order by id) end`;
const tenantStores = sql`case ${companies.type}
  when 'partner' then (select count(*) from companies a join stores s on s.account_id = a.id
    where a.partner_id = ${companies.id})
  when 'platform' then (select count(*) from stores)
  else 0 end`;

/** The columns from which the login response is built. */
export type ContextRow = NonNullable<Awaited<ReturnType<typeof findContext>>>;

export async function findContext(db: DbOrTx, userId: number) {
  const [row] = await db
    .select({
      id: users.id,
      email: users.email,
      name: users.name,
      role: users.role,
      companyId: companies.id,
      companyType: companies.type,
      companyName: companies.name,
      partnerId: companies.partnerId,
      primaryColor: companies.primaryColor,
      logoUrl: companies.logoUrl,
      whiteLabelEnabled: brands.whiteLabelEnabled,
      brandName: brands.brandName,
      whiteLabelDomain: brands.whiteLabelDomain,
      planId: plans.id,
      planName: plans.name,
      planFeatures: plans.features,
      storeIds: ownStores.mapWith((ids: number[]) => ids),
      tenantStores: tenantStores.mapWith(Number),
    })
    .from(users)
    .innerJoin(companies, eq(companies.id, users.companyId))
    .innerJoin(brands, eq(brands.id, sql`coalesce(${companies.partnerId}, ${companies.id})`))
    .leftJoin(plans, eq(plans.id, companies.planId))
    .where(eq(users.id, userId));
  return row;
}

/**
 * Returns the sign-in policy of an email domain. Undefined means that the domain has no policy, so its users sign in
 * with a password.
 */
export async function findDomainPolicy(db: DbOrTx, domain: string) {
  const [policy] = await db
    .select({ connectionId: ssoConnections.id, passwordLogin: ssoConnections.passwordLogin })
    .from(ssoDomains)
    .innerJoin(ssoConnections, eq(ssoConnections.id, ssoDomains.connectionId))
    .innerJoin(companies, eq(companies.id, ssoConnections.companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(ssoDomains.domain, domain), ssoConnections.isActive, isTenantActive));
  return policy;
}

/** A recorded sign-in. Its id is the family id of all tokens that come from it. */
export type AuthenticationEvent = Omit<
  typeof authenticationEvents.$inferSelect,
  "logoutTime" | "factorAt"
>;

export async function insertAuthenticationEvent(
  tx: Tx,
  event: AuthenticationEvent & { readonly factorAt?: Date | null },
): Promise<void> {
  await tx.insert(authenticationEvents).values(event);
}
