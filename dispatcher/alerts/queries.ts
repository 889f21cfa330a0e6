import { and, asc, desc, eq, gt, gte, lte, max, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { anyOf, anyOfQuery } from "../../db/conditions.ts";
import { skippedThrough, firstQueued, NO_TEST } from "../../db/log.ts";
import { ulidFloor } from "../../db/partitions.ts";
import { onlyRow, asTable, list, nullable, statement, table, value } from "../../db/statement.ts";
import { alerts, alertSettings, incidents } from "../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { companies, users } from "../../db/schema/companies.ts";
import { outbox } from "../../db/schema/outbox.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";
import { addMs } from "../../src/lib/clock.ts";

// Checks of subscriptions run all the time, so their statements are raw SQL: the cost follows the number of
// subscriptions in trouble, not of all subscriptions.

/** The next attempt number of a lane's head that has failed twice. */
const RETRYING_FROM = 3;

const troubleQuery = statement({
  name: "alerts.trouble",
  // Raw SQL, because the statement jumps recursively from one subscription with waiting entries to the next.
  params: { everywhere: value("boolean") },
  columns: { troubled: list(webhookSubscriptions.id), unmailed: list(alerts.partnerId) },
  text: ({ everywhere }) => sql`
    with recursive waiting as (
      (select subscription_id from outbox where state = 'waiting' order by subscription_id limit 1)
      union all
      select next.subscription_id from waiting w cross join lateral (
             select subscription_id from outbox
              where state = 'waiting' and subscription_id > w.subscription_id
              order by subscription_id limit 1) next
    ), found as (
      select subscription_id as id from waiting
      union select id from webhook_subscriptions where state = 'active' and consecutive_failure_count > 0
      union select id from webhook_subscriptions where state = 'disabled'
      union select subscription_id from incidents where ended_at is null
      -- Adds subscriptions that had a backlog at the last count. A new count would walk over all queued entries.
      union select s.id
              from stats_progress p cross join webhook_subscriptions s cross join lateral (
                     select entries from backlog_stats b
                      where b.subscription_id = s.id and b.bucket_at = p.counted_until - interval '5 minutes' offset 0) b
             where ${everywhere} and s.state = 'active' and b.entries > 0
    )
    select array(
             select f.id
               from found f cross join lateral (
                      select partner_id, state, disabled_at from webhook_subscriptions where id = f.id offset 0) s
               left join lateral (
                      select disabled_at from incidents
                       where subscription_id = f.id and ended_at is null offset 0) i on true
              where s.state <> 'disabled' or i.disabled_at is distinct from s.disabled_at
              order by s.partner_id, f.id) as troubled,
           array(select distinct a.partner_id from alerts a join companies c on c.id = a.partner_id and c.is_active
                  where a.mail_state = 'pending' order by a.partner_id) as unmailed`,
});

/**
 * Finds the subscriptions that fail, wait for a retry or are disabled, and those with an open incident. `everywhere`
 * adds those that had a backlog at the last count, at most ten minutes ago. A disabled subscription is left out if
 * its incident has the alert about the disabling already, because nothing changes until an enable or a delete.
 *
 * The subscriptions of a partner are adjacent, so that one mail has all their alerts. Also returns the partners that
 * have alerts to be mailed; those of a suspended partner are held until it is active again.
 */
export async function findTrouble(db: DbOrTx, everywhere: boolean) {
  return onlyRow(await db.run(troubleQuery, { everywhere }));
}

const seenQuery = statement({
  name: "alerts.see",
  // Raw SQL, because the statement looks each table up by its key, once per subscription.
  params: { ids: list(webhookSubscriptions.id) },
  columns: {
    id: webhookSubscriptions.id,
    partnerId: webhookSubscriptions.partnerId,
    state: webhookSubscriptions.state,
    failures: webhookSubscriptions.consecutiveFailureCount,
    /** The time of the 20th failure, which disabled the subscription; null if a user disabled it. */
    disabledAt: webhookSubscriptions.disabledAt,
    disabledReason: webhookSubscriptions.disabledReason,
    /** Whether the head of a lane has failed twice and waits for its third or fourth attempt. */
    isRetrying: value("boolean"),
    /** The time at which the oldest queued event was recorded. */
    oldestAt: nullable(outbox.recordedAt),
    /** The time of the last 2xx response. */
    lastSuccessAt: nullable(webhookSubscriptions.createdAt),
    /** The open incident, if any, with the state of the subscription at the last check. */
    open: table({
      id: incidents.id,
      openedAt: incidents.openedAt,
      beganAt: incidents.beganAt,
      disabledAt: incidents.disabledAt,
      failures: incidents.failures,
      isTold: incidents.isTold,
      kinds: list(alerts.kind),
    }),
    /** The alert settings of the partner; empty if the defaults apply. */
    settings: table({
      kinds: alertSettings.kinds,
      oldestWaitingMinutes: alertSettings.oldestWaitingMinutes,
      webhookUrl: alertSettings.webhookUrl,
    }),
  },
  text: ({ ids }) => sql`
    select s.id, s.partner_id as "partnerId", s.state, s.consecutive_failure_count as failures,
           case when s.disabled_reason not in ('manual', 'operator', 'suspended') then s.disabled_at end as "disabledAt",
           s.disabled_reason as "disabledReason",
           -- A disabled subscription is not retrying, because its entries are held.
           s.state = 'active' and exists (
             -- All waiting entries are searched, because any number of reviews may wait, and the first of them may have
             -- failed only once.
             select from outbox
              where state = 'waiting' and subscription_id = s.id
                and skipped_at is null and sequence > ${skippedThrough(sql`s.id`)}
                and attempt >= ${RETRYING_FROM} and not is_test) as "isRetrying",
           head.recorded_at as "oldestAt", success.at as "lastSuccessAt",
           ${asTable(sql`
             select i.id, i.opened_at as "openedAt", i.began_at as "beganAt", i.disabled_at as "disabledAt", i.failures, i.is_told as "isTold",
                    array(select kind from alerts where incident_id = i.id) as kinds
              where i.id is not null`)} as open,
           ${asTable(sql`
             select kinds, oldest_waiting_minutes as "oldestWaitingMinutes", webhook_url as "webhookUrl"
               from alert_settings where partner_id = s.partner_id`)} as settings
      from unnest((select ${ids}::text[])) as given(id) cross join lateral (
             select * from webhook_subscriptions where id = given.id offset 0) s
      left join lateral (
             ${firstQueued(NO_TEST)}) head on true
      left join lateral (
             select * from incidents where subscription_id = s.id and ended_at is null offset 0) i on true
      left join lateral (
             select started_at + duration_ms * interval '1 millisecond' as at from delivery_attempts
              where subscription_id = s.id and outcome = 'delivered'
                -- Searches only if an attempt can have succeeded: a success leaves an active subscription with fewer
                -- failures, or with none.
                and s.state = 'active' and (s.consecutive_failure_count < i.failures or s.consecutive_failure_count = 0)
                and i.id is not null
              order by id desc limit 1) success on true`,
});

export function seeSubscriptions(db: DbOrTx, ids: readonly string[]) {
  return db.run(seenQuery, { ids });
}

export type SeenRow = Awaited<ReturnType<typeof seeSubscriptions>>[number];
export type Troubled = Pick<
  typeof webhookSubscriptions.$inferSelect,
  "id" | "consecutiveFailureCount" | "disabledAt" | "disabledReason"
>;

type NewIncident = typeof incidents.$inferInsert;
export type NewAlert = typeof alerts.$inferInsert;

export async function insertIncident(tx: Tx, incident: NewIncident): Promise<void> {
  await tx.insert(incidents).values(incident);
}

export async function updateIncident(tx: Tx, id: string, set: Partial<NewIncident>): Promise<void> {
  await tx.update(incidents).set(set).where(eq(incidents.id, id));
}

/** Inserts alerts. Each kind exists once per incident, so an alert that exists already stays unchanged. */
export async function insertAlerts(tx: Tx, rows: NewAlert[]): Promise<void> {
  if (rows.length > 0) await tx.insert(alerts).values(rows).onConflictDoNothing();
}

const FAILURE = {
  id: deliveryAttempts.id,
  at: deliveryAttempts.startedAt,
  event_id: deliveryAttempts.eventId,
  event: deliveryAttempts.event,
  status_code: deliveryAttempts.statusCode,
  error_code: deliveryAttempts.errorCode,
  tls_reason: deliveryAttempts.tlsReason,
};

interface FailureSearch {
  readonly outcome: "failed" | "retry";
  /** The earliest start of the attempts; any if absent. */
  readonly since?: Date;
}

/**
 * Selects failed attempts for an alert. The outcome is a literal in the SQL, because only then PostgreSQL uses the
 * partial index.
 */
function failures(tx: Tx, subscriptionId: string, { outcome: wanted, since }: FailureSearch) {
  const { id, outcome } = deliveryAttempts;
  const isOutcome = sql`${outcome} = ${sql.raw(`'${wanted}'`)} and ${outcome} <> 'delivered'`;
  const isLater = since && gte(id, ulidFloor(since));
  return tx
    .select(FAILURE)
    .from(deliveryAttempts)
    .where(and(eq(deliveryAttempts.subscriptionId, subscriptionId), isOutcome, isLater));
}

export type Failure = Awaited<ReturnType<typeof failures>>[number];

/** Reads the first of the last `count` permanent failures; undefined if there are fewer. */
export async function firstOfRun(tx: Tx, id: string, count: number): Promise<Failure | undefined> {
  const [row] = await failures(tx, id, { outcome: "failed" })
    .orderBy(desc(deliveryAttempts.id))
    .limit(1)
    .offset(count - 1);
  return row;
}

/** Reads the first and the last failed attempt since an instant. */
export async function failuresSince(tx: Tx, id: string, since: Date) {
  const ends: Failure[] = [];
  for (const outcome of ["failed", "retry"] as const)
    for (const order of [asc, desc])
      ends.push(
        ...(await failures(tx, id, { outcome, since })
          .orderBy(order(deliveryAttempts.id))
          .limit(1)),
      );
  const sorted = ends.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return { first: sorted[0], last: sorted.at(-1) };
}

const { name, role, isActive, email, companyId } = users;
const { brandName, primaryColor, whiteLabelEnabled, logoUrl } = companies;
const brandColumns = { brandName, primaryColor, whiteLabelEnabled, logoUrl };

/**
 * The join condition for the partner of an alert. It excludes suspended partners, because their alerts are held
 * (contract 10.1).
 */
const ofActivePartner = and(eq(companies.id, alerts.partnerId), companies.isActive);

/** The longest pause between two mails that a partner can choose (contract 6.21), in milliseconds. */
const MAX_DIGEST_MS = 86_400_000;

/**
 * Reads the pending alerts of these partners, the earliest first, with the subscription, the settings of the partner,
 * and the times of its last mail and of the last one about a recovery, unless they are older than `MAX_DIGEST_MS`.
 */
export function unmailedAlerts(tx: Tx, partnerIds: readonly number[], at: Date) {
  const { id, kind, incidentId, subscriptionId, partnerId, raisedAt, cause, mailState } = alerts;
  const { label, webhookUrl } = webhookSubscriptions;
  const mailed = alias(alerts, "mailed");
  const recoveredAt = sql`max(${mailed.mailedAt}) filter (where ${mailed.kind} = 'recovered')`;
  const last = tx
    .select({
      at: max(mailed.mailedAt).as("at"),
      recoveredAt: recoveredAt.mapWith(mailed.mailedAt).as("recovered_at"),
    })
    .from(mailed)
    .where(
      and(
        eq(mailed.partnerId, partnerId),
        sql`${mailed.mailState} = 'queued'`,
        gt(mailed.mailedAt, addMs(at, -MAX_DIGEST_MS)),
      ),
    )
    .as("last");
  const alert = { id, kind, incidentId, subscriptionId, partnerId, raisedAt, cause };
  const mailedBefore = { lastMailedAt: last.at, lastRecoveredAt: last.recoveredAt };
  return tx
    .select({ ...alert, label, webhookUrl, settings: alertSettings, ...mailedBefore })
    .from(alerts)
    .innerJoin(webhookSubscriptions, eq(webhookSubscriptions.id, subscriptionId))
    .innerJoin(companies, ofActivePartner)
    .leftJoin(alertSettings, eq(alertSettings.partnerId, alerts.partnerId))
    .crossJoinLateral(last)
    .where(and(sql`${mailState} = 'pending'`, anyOf(partnerId, partnerIds)))
    .orderBy(asc(id));
}

export type UnmailedRow = Awaited<ReturnType<typeof unmailedAlerts>>[number];

export async function markMailed(tx: Tx, ids: readonly string[], at: Date): Promise<void> {
  await tx.update(alerts).set({ mailState: "queued", mailedAt: at }).where(anyOf(alerts.id, ids));
}

/** Reads the branding and the active owners of these partners. */
export function partnersOf(tx: Tx, partnerIds: readonly number[]) {
  return tx
    .select({ id: companies.id, company: companies.name, brand: brandColumns, name, email })
    .from(companies)
    .leftJoin(users, and(eq(companyId, companies.id), eq(role, "partner_owner"), isActive))
    .where(anyOf(companies.id, partnerIds))
    .orderBy(asc(users.id));
}

export type PartnerRow = Awaited<ReturnType<typeof partnersOf>>[number];

/** The most alert POSTs that are under way at the same time. */
const POSTS_AT_ONCE = 16;
/**
 * The duration of a claim in milliseconds, longer than a POST may take. After this time another process repeats the
 * POST under the same id.
 */
export const CLAIM_MS = 60_000;

/** Claims due alert POSTs for `CLAIM_MS`. If this process dies, another process sends them after that. */
export function claimPosts(db: Db, at: Date) {
  const due = db
    .select({ id: alerts.id })
    .from(alerts)
    .innerJoin(companies, ofActivePartner)
    .where(and(sql`${alerts.webhookState} = 'queued'`, lte(alerts.webhookDueAt, at)))
    .orderBy(alerts.webhookDueAt)
    .limit(POSTS_AT_ONCE)
    .for("update", { of: alerts, skipLocked: true });
  const { id, partnerId, label, webhookUrl, deliveryKind } = webhookSubscriptions;
  return db
    .update(alerts)
    .set({ webhookDueAt: addMs(at, CLAIM_MS), webhookAttempt: sql`${alerts.webhookAttempt} + 1` })
    .from(webhookSubscriptions)
    .leftJoin(alertSettings, eq(alertSettings.partnerId, partnerId))
    .where(and(anyOfQuery(alerts.id, due), eq(id, alerts.subscriptionId)))
    .returning({
      alert: alerts,
      // The object `subscription` of the body.
      subscription: { id, label, webhook_url: webhookUrl, delivery_kind: deliveryKind },
      settings: alertSettings,
    });
}

export type ClaimedPost = Awaited<ReturnType<typeof claimPosts>>[number];

/** Applies the result of a POST if the alert is still at this attempt. */
export async function updateClaimedPost(db: Db, one: ClaimedPost["alert"], to: Partial<NewAlert>) {
  const isSame = and(eq(alerts.id, one.id), eq(alerts.webhookAttempt, one.webhookAttempt));
  await db.update(alerts).set(to).where(isSame);
}
