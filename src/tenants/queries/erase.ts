// The statements of an erasure, each with a bounded number of rows (contract 10.8). The callers run them in the
// transaction that stores the progress.

import { and, asc, eq, gt, isNotNull, or, sql, type SQL } from "drizzle-orm";

import { anyOf, isAttemptOfAny } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { boundLockWait } from "../../../db/server.ts";
import { alertSettings, mails } from "../../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { auditLog, inbox, users, userStores } from "../../../db/schema/companies.ts";
import { reviewHistory, reviews } from "../../../db/schema/reviews.ts";
import {
  emailCodeLimits,
  emailCodes,
  emailCodeTries,
  invitations,
  keyedRequests,
  signInLocks,
  ssoCodes,
  ssoIdentities,
} from "../../../db/schema/sign-in.ts";
import { recoveryCodes, secondFactors } from "../../../db/schema/second-factors.ts";
import { authenticationEvents, portalLinks } from "../../../db/schema/tokens.ts";
import { webhookSubscriptions } from "../../../db/schema/webhooks.ts";
import { list, rows, statement, type ValuesOf } from "../../../db/statement.ts";
import { hasMailbox } from "../../lib/email.ts";
import type { Digest } from "../../lib/kind-key.ts";
import type { Selector } from "../erasure-model.ts";
import { erasedEmail, ERASED_NAME, type Personal } from "../erasure-rules.ts";

/** The most rows that one statement changes. `READ_ROWS` is the most rows that one statement searches. */
export const CHANGED_ROWS = 500;
const READ_ROWS = 5_000;

/**
 * The result of one chunk. `rows` is the number of changed rows. `next` is the key of the last row that was read;
 * undefined if no rows follow.
 */
export interface Walked {
  readonly rows: number;
  readonly next: string | undefined;
}

const endOf = <T>(found: readonly T[], limit: number): T | undefined =>
  found.length < limit ? undefined : found.at(-1);

// ------------------------------------------------------------------------------------------------ reviews and events

/** The most reviews that one chunk erases. */
const REVIEWS_AT_ONCE = 20;

/**
 * Finds the next reviews of a reviewer after an id, among the next `READ_ROWS` reviews. They are searched without an
 * index of reviewer addresses, which would make every report slower. `end` is the id at which the next search
 * continues; undefined if no reviews follow.
 */
export async function nextReviews(
  db: DbOrTx,
  { email, reviewIds, partnerId, accountId }: Extract<Selector, { kind: "reviewer" }>,
  after: number,
): Promise<{ readonly found: number[]; readonly end: number | undefined }> {
  const { id, reviewerEmail } = reviews;
  const limit = email === null ? REVIEWS_AT_ONCE : READ_ROWS;
  const looked = await db
    .select({ id, of: reviews.partnerId, reviewerEmail })
    .from(reviews)
    .where(
      and(
        gt(id, after),
        accountId === null ? undefined : eq(reviews.accountId, accountId),
        email === null ? anyOf(id, reviewIds) : undefined,
      ),
    )
    .orderBy(asc(id))
    .limit(limit);
  const named = new Set(reviewIds);
  // The emails are compared here, because PostgreSQL cannot compute the normal form of an email.
  const isReviewer = (one: string | null) =>
    email !== null && one !== null && hasMailbox([one], email);
  const found = looked
    .filter(({ of }) => partnerId === null || of === partnerId)
    .filter((row) => named.has(row.id) || isReviewer(row.reviewerEmail))
    .map((row) => row.id);
  const some = found.slice(0, REVIEWS_AT_ONCE);
  return { found: some, end: some.length < found.length ? some.at(-1) : endOf(looked, limit)?.id };
}

/**
 * Removes the reviewer and all texts of a review. The update waits for a concurrent report of the review. Later reports
 * see from `erased_at` that the review is erased.
 */
export async function eraseReview(tx: Tx, wanted: number): Promise<number> {
  const { responseBody, flagReason, erasedAt } = reviews;
  const emptied = (column: typeof responseBody | typeof flagReason) =>
    sql`case when ${column} is not null then '' end`;
  const { count } = await tx
    .update(reviews)
    .set({
      reviewer: null,
      reviewerEmail: null,
      content: "",
      profanity: [],
      responseBody: emptied(responseBody),
      flagReason: emptied(flagReason),
      erasedAt: sql`coalesce(${erasedAt}, now())`,
      updatedAt: sql`now()`,
    })
    .where(eq(reviews.id, wanted));
  return count;
}

const PERSONAL_COLUMNS = {
  actor: reviewHistory.actor,
  review: reviewHistory.review,
  metadata: reviewHistory.metadata,
};
const EVENT_KEYS = {
  id: reviewHistory.id,
  eventId: reviewHistory.eventId,
  partnerId: reviewHistory.partnerId,
};
const EVENT_COLUMNS = { ...EVENT_KEYS, ...PERSONAL_COLUMNS };
export type EventRow = Personal & ValuesOf<typeof EVENT_KEYS>;

/** Reads the next events of a review after an id, in the order of their ids. */
export function eventsOfReview(db: DbOrTx, reviewId: number, after: number): Promise<EventRow[]> {
  return db
    .select(EVENT_COLUMNS)
    .from(reviewHistory)
    .where(and(eq(reviewHistory.reviewId, reviewId), gt(reviewHistory.id, after)))
    .orderBy(asc(reviewHistory.id))
    .limit(CHANGED_ROWS);
}

/**
 * Reads the next `CHANGED_ROWS` rows of a partner's history after an id, and returns those with actions of the user.
 * All rows are searched, because there is no index of events by user.
 */
export async function eventsOfActor(
  db: DbOrTx,
  {
    userId,
    account,
  }: { readonly userId: number; readonly account: { id: number; partnerId: number } },
  after: number,
): Promise<{ readonly events: EventRow[]; readonly next: number | undefined }> {
  const { id, partnerId, accountId, actor } = reviewHistory;
  const looked = await db
    .select({
      id,
      isOwn: sql`${accountId} = ${account.id} and ${actor}->>'type' = 'user'
                             and ${actor}->>'id' = ${String(userId)}`.mapWith(Boolean),
    })
    .from(reviewHistory)
    .where(and(eq(partnerId, account.partnerId), gt(id, after)))
    .orderBy(asc(id))
    .limit(CHANGED_ROWS);
  const own = looked.filter(({ isOwn }) => isOwn).map((row) => row.id);
  const events =
    own.length === 0
      ? []
      : await db.select(EVENT_COLUMNS).from(reviewHistory).where(anyOf(id, own)).orderBy(asc(id));
  return { events, next: endOf(looked, CHANGED_ROWS)?.id };
}

const replacingEvents = statement({
  name: "erasure.replaceEvents",
  // Raw SQL, because the new values of the rows come from a parameter that is a table.
  params: { given: rows({ id: reviewHistory.id, ...PERSONAL_COLUMNS }) },
  text: ({ given }) => sql`
    update review_history h
       set actor = given.actor, review = given.review, metadata = given.metadata, erased_at = now()
      from ${given} where h.id = given.id`,
});

const countingErasure = statement({
  name: "erasure.count",
  // Raw SQL, because the offsets are locked in the order of their ids before the update, as commits of attempts lock
  // them.
  params: { partners: list(webhookSubscriptions.partnerId) },
  text: ({ partners }) => sql`
    with held as materialized (
      select subscription_id from outbox_offsets
       where subscription_id = any(array(select id from webhook_subscriptions where partner_id = any(${partners})))
       order by subscription_id for no key update
    )
    update outbox_offsets set erasures = erasures + 1
     where subscription_id = any(array(select subscription_id from held))`,
});

/**
 * The longest time in milliseconds for which an erasure waits for the lock of an offset. It is short, because reports
 * and deliveries of the same partners may wait for the erasure during that time.
 */
const OFFSET_LOCK_MS = 100;

/**
 * Counts an erasure at all subscriptions of these partners, deleted ones included. The count locks their offsets. So no
 * attempt is recorded until the commit, and later statements of this transaction see all recorded attempts. A
 * transaction that records an attempt after the commit sees from the count that its event may be erased, and stores no
 * response (dispatcher/store/attempt-queries.ts).
 *
 * The count and all later statements of the transaction wait at most `OFFSET_LOCK_MS` for a lock.
 */
export async function countErasure(tx: Tx, partnerIds: Iterable<number>): Promise<void> {
  const partners = [...new Set(partnerIds)];
  await Promise.all([boundLockWait(tx, OFFSET_LOCK_MS), tx.run(countingErasure, { partners })]);
}

/**
 * Replaces the values in events that may name a person, and removes bodies and responses from the attempts of these
 * events. Returns the numbers of changed events and attempts.
 */
export async function replaceEvents(tx: Tx, given: readonly EventRow[]) {
  if (given.length === 0) return { events: 0, attempts: 0 };
  const { count: events } = await tx.run(replacingEvents, { given });
  // The erasure is counted after the events are replaced, because the deliveries of the partners wait from the count
  // until the commit.
  await countErasure(
    tx,
    given.map(({ partnerId }) => partnerId),
  );
  const { requestBody, responseHeaders, responseExcerpt, bodyDigest } = deliveryAttempts;
  const { count: attempts } = await tx
    .update(deliveryAttempts)
    .set({
      bodyDigest: sql`coalesce(${bodyDigest}, substring(sha256(convert_to(${requestBody}, 'UTF8')) for 16))`,
      requestHeaders: null,
      requestBody: null,
      responseHeaders: null,
      responseExcerpt: null,
    })
    .where(
      and(
        isAttemptOfAny(given.map(({ eventId }) => eventId)),
        or(isNotNull(requestBody), isNotNull(responseHeaders), isNotNull(responseExcerpt)),
      ),
    );
  return { events, attempts };
}

/** Reads the next `CHANGED_ROWS` actions of the inbox after a position, and deletes those about an erased review. */
export async function eraseInbox(tx: Tx, after: number): Promise<Walked> {
  const { position, action } = inbox;
  const looked = await tx
    .select({ position })
    .from(inbox)
    .where(gt(position, after))
    .orderBy(asc(position))
    .limit(CHANGED_ROWS);
  const named = sql`${action} ->> 'review_id'`;
  const { count } = await tx.delete(inbox).where(
    and(
      anyOf(
        position,
        looked.map((row) => row.position),
      ),
      sql`exists (select from reviews r where r.erased_at is not null
                   and r.id = case when ${named} ~ '^[1-9][0-9]{0,8}$' then (${named})::integer end)`,
    ),
  );
  return { rows: count, next: endOf(looked, CHANGED_ROWS)?.position.toString() };
}

// ------------------------------------------------------------------------------------------------ mails, responses

/** Ends the queued mails that match `where` without sending them, and removes their contents. */
export async function dropMails(tx: Tx, where: SQL): Promise<number> {
  const { count } = await tx
    .update(mails)
    .set({
      state: "dead",
      dueAt: null,
      settledAt: sql`now()`,
      sealedMessage: null,
      reviewId: null,
      errorCode: "erased",
      lastError: "The person was erased.",
    })
    .where(and(sql`${mails.state} = 'queued'`, where));
  return count;
}

export const isMailAbout = (reviewId: number): SQL => eq(mails.reviewId, reviewId);
export const isMail = (ids: readonly string[]): SQL => anyOf(mails.id, ids);

/** Reads the next `CHANGED_ROWS` queued mails after an id. */
export async function waitingMails(db: DbOrTx, after: string) {
  const { id, sealedMessage } = mails;
  const found = await db
    .select({ id, sealedMessage })
    .from(mails)
    .where(and(sql`${mails.state} = 'queued'`, gt(id, after)))
    .orderBy(asc(id))
    .limit(CHANGED_ROWS);
  return { found, next: endOf(found, CHANGED_ROWS)?.id };
}

/** Reads the next `CHANGED_ROWS` requests with an `Idempotency-Key` after a key, with their stored responses. */
export async function storedResponses(db: DbOrTx, after: string) {
  const { key, sealedResponse } = keyedRequests;
  const found = await db
    .select({ key, sealedResponse })
    .from(keyedRequests)
    .where(gt(key, after))
    .orderBy(asc(key))
    .limit(CHANGED_ROWS);
  return { found, next: endOf(found, CHANGED_ROWS)?.key };
}

/**
 * Removes the stored responses of requests with an `Idempotency-Key`, but keeps the keys. If a client repeats such a
 * request, it gets the error 409 `request_unfinished`.
 */
export async function dropResponses(tx: Tx, keys: readonly string[]): Promise<number> {
  if (keys.length === 0) return 0;
  const isStored = and(anyOf(keyedRequests.key, keys), isNotNull(keyedRequests.sealedResponse));
  return (await tx.update(keyedRequests).set({ sealedResponse: null }).where(isStored)).count;
}

export async function deleteKeys(tx: Tx, keys: readonly string[]): Promise<number> {
  if (keys.length === 0) return 0;
  return (await tx.delete(keyedRequests).where(anyOf(keyedRequests.key, keys))).count;
}

// ------------------------------------------------------------------------------------------------ users

/**
 * Replaces the name and the email of a user, who keeps the id. Deletes the password, the rows that `deleteSignInOf`
 * deletes, and the sign-in locks, counters and codes of the email.
 */
export async function eraseUser(
  tx: Tx,
  userId: number,
  { digests }: { readonly digests: readonly Digest[] },
): Promise<number> {
  const erased = {
    email: erasedEmail(userId),
    name: ERASED_NAME,
    externalId: null,
    passwordHash: null,
    isActive: false,
    updatedAt: sql`now()`,
  };
  const { count } = await tx.update(users).set(erased).where(eq(users.id, userId));
  await deleteSignInOf(tx, [userId]);
  await forgetEmail(tx, digests);
  return count;
}

/**
 * Deletes the store access, invitations, identities, SSO codes, second factors, recovery codes and portal links of
 * these users. Their passwords and tokens stay.
 */
export async function deleteSignInOf(tx: Tx, userIds: readonly number[]): Promise<void> {
  for (const column of [
    userStores.userId,
    invitations.userId,
    ssoIdentities.userId,
    ssoCodes.userId,
    secondFactors.userId,
    recoveryCodes.userId,
    portalLinks.actsAs,
  ])
    await tx.delete(column.table).where(anyOf(column, userIds));
}

/** Deletes the sign-in locks, counters and codes of an email, by the digests under which they are stored. */
export async function forgetEmail(tx: Tx, digests: readonly Digest[]): Promise<void> {
  for (const column of [
    signInLocks.emailDigest,
    emailCodes.emailDigest,
    emailCodeLimits.emailDigest,
    emailCodeTries.emailDigest,
  ])
    await tx.delete(column.table).where(anyOf(column, digests));
}

/** Removes the network address and the browser from the next `CHANGED_ROWS` sign-ins of a user after an id. */
export async function eraseSignIns(tx: Tx, userId: number, after: string): Promise<Walked> {
  const { id } = authenticationEvents;
  const found = await tx
    .select({ id })
    .from(authenticationEvents)
    .where(and(eq(authenticationEvents.userId, userId), gt(id, after)))
    .orderBy(asc(id))
    .limit(CHANGED_ROWS);
  const ids = found.map((row) => row.id);
  const { count } = await tx
    .update(authenticationEvents)
    .set({ ip: null, userAgent: null })
    .where(anyOf(id, ids));
  return { rows: count, next: endOf(found, CHANGED_ROWS)?.id };
}

/**
 * SQL expression for the details of an audit row that an erasure keeps: ids, kinds, numbers and lists of field names.
 * Free texts and the old and new values of a change are left out.
 */
export const keptDetails = sql`(
  select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(${auditLog.details})
   where jsonb_typeof(value) <> 'string' and key <> 'changes' or key ~ '(_id|^jti|^kid|^kind|^method|^type)$')`;

/** The conditions for the rows of the audit log in which a user acted, or impersonated another user. */
export const AUDIT_ROWS = {
  acted: (userId: number) => eq(auditLog.actorId, userId),
  impersonated: (userId: number) => eq(auditLog.impersonatorId, userId),
} as const;

/**
 * Removes network addresses, browsers and texts from the next `CHANGED_ROWS` audit rows that match `where` after an id.
 */
export async function eraseAudit(tx: Tx, where: SQL, after: number): Promise<Walked> {
  const { id } = auditLog;
  const found = await tx
    .select({ id })
    .from(auditLog)
    .where(and(where, gt(id, after)))
    .orderBy(asc(id))
    .limit(CHANGED_ROWS);
  const ids = found.map((row) => row.id);
  // The address is also removed from the sign-ins of impersonations, which contain the network address of the
  // impersonator. A sign-in is found by its time, which is that of its audit row.
  await tx
    .update(authenticationEvents)
    .set({ ip: null, userAgent: null })
    .where(
      sql`${authenticationEvents.id} = any(array(
          select e.id from audit_log a cross join lateral (
                   select id from authentication_events
                    where user_id = a.actor_id and method = 'impersonation' and at = a.at offset 0) e
           where ${sql`a.id`} = any(${sql.param(ids)}) and a.action = 'IMPERSONATION_STARTED'))`,
    );
  const { count } = await tx
    .update(auditLog)
    .set({ ip: null, userAgent: null, details: keptDetails })
    .where(anyOf(id, ids));
  return { rows: count, next: endOf(found, CHANGED_ROWS)?.id.toString() };
}

/**
 * Reads the next `READ_ROWS` audit rows about wrong codes after an id. From those with the digest of this email,
 * removes the digest and the network address and browser of the caller.
 */
export async function eraseWrongCodes(
  tx: Tx,
  digest: Digest<"email">,
  after: number,
): Promise<Walked> {
  const { id, action, details } = auditLog;
  const looked = await tx
    .select({ id, isOwn: sql`${details} ->> 'email_digest' = ${digest}`.mapWith(Boolean) })
    .from(auditLog)
    .where(and(eq(action, "OTP_FAILED"), gt(id, after)))
    .orderBy(asc(id))
    .limit(READ_ROWS);
  const own = looked.filter(({ isOwn }) => isOwn).map((row) => row.id);
  const { count } = await tx
    .update(auditLog)
    .set({ ip: null, userAgent: null, details: keptDetails })
    .where(anyOf(id, own));
  return { rows: count, next: endOf(looked, READ_ROWS)?.id.toString() };
}

/**
 * Removes an email address, in every spelling, from the recipients of partners' alerts. If a partner has no other
 * recipient, its owners get the alerts.
 */
export async function eraseRecipient(tx: Tx, email: string): Promise<number> {
  const { id, recipients, confirmedRecipients } = alertSettings;
  const read = (where: SQL) =>
    tx.select({ id, recipients, confirmedRecipients }).from(alertSettings).where(where);
  const without = (emails: readonly string[] | null) =>
    emails?.filter((one) => !hasMailbox([email], one)) ?? [];
  const all = await read(isNotNull(recipients));
  const ids = all.filter((row) => hasMailbox(row.recipients, email)).map((row) => row.id);
  const named = await read(anyOf(id, ids)).for("no key update");
  for (const row of named) {
    const left = without(row.recipients);
    await tx
      .update(alertSettings)
      .set({
        recipients: left.length > 0 ? left : null,
        confirmedRecipients: without(row.confirmedRecipients),
      })
      .where(eq(id, row.id));
  }
  return named.length;
}
