import { and, asc, desc, eq, inArray, lte, max, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";

import type { Db, DbOrTx, Tx } from "../../db/client.ts";
import { anyOf } from "../../db/conditions.ts";
import { alerts, alertSettings, incidents } from "../../db/schema/alerts.ts";
import { deliveryAttempts } from "../../db/schema/attempts.ts";
import { companies, users } from "../../db/schema/companies.ts";
import { webhookSubscriptions } from "../../db/schema/webhooks.ts";

type NewIncident = typeof incidents.$inferInsert;
type NewAlert = typeof alerts.$inferInsert;

export async function insertIncident(tx: Tx, incident: NewIncident): Promise<void> {
  await tx.insert(incidents).values(incident);
}

export async function updateIncident(tx: Tx, id: string, set: Partial<NewIncident>): Promise<void> {
  await tx.update(incidents).set(set).where(eq(incidents.id, id));
}

/** What stands there already stays: each kind once in an incident. */
export async function insertAlerts(tx: Tx, rows: readonly NewAlert[]): Promise<void> {
  if (rows.length > 0)
    await tx
      .insert(alerts)
      .values([...rows])
      .onConflictDoNothing();
}

export type SettingsRow = typeof alertSettings.$inferSelect;

/** Those partners have none that are not there: the defaults hold. */
export async function settingsOf(
  db: DbOrTx,
  partnerIds: readonly number[],
): Promise<Map<number, SettingsRow>> {
  const found = await db
    .select()
    .from(alertSettings)
    .where(anyOf(alertSettings.partnerId, partnerIds));
  return new Map(found.map((one) => [one.partnerId, one]));
}

/** How an attempt ended that was no success. */
export interface Failure {
  readonly eventId: string;
  readonly event: string;
  readonly at: Date;
  readonly statusCode: number | null;
  readonly errorCode: string | null;
}

const { eventId, event, startedAt, statusCode, errorCode, outcome } = deliveryAttempts;
const FAILURE = { eventId, event, at: startedAt, statusCode, errorCode };

/** The last so many of an outcome, the newest first. The literal is for the partial index. */
export function lastFailures(
  tx: DbOrTx,
  subscriptionId: string,
  which: { readonly outcome: "failed" | "retry"; readonly limit: number },
): Promise<Failure[]> {
  return tx
    .select(FAILURE)
    .from(deliveryAttempts)
    .where(
      and(
        eq(deliveryAttempts.subscriptionId, subscriptionId),
        sql`${outcome} = ${sql.raw(`'${which.outcome}'`)} and ${outcome} <> 'delivered'`,
      ),
    )
    .orderBy(desc(deliveryAttempts.id))
    .limit(which.limit);
}

const { name, role, isActive, email, companyId } = users;
const { brandName, primaryColor, whiteLabelEnabled } = companies;

/**
 * What is to be mailed to these partners, the earliest first, with what the mail says of its subscription, the settings of
 * the partner, and when the partner was mailed last.
 */
export function unmailedAlerts(tx: Tx, partnerIds: readonly number[]) {
  const { id, kind, subscriptionId, partnerId, raisedAt, cause, mailState } = alerts;
  const { label, webhookUrl } = webhookSubscriptions;
  const mailed = alias(alerts, "mailed");
  const last = tx
    .select({ at: max(mailed.mailedAt).as("at") })
    .from(mailed)
    .where(and(eq(mailed.partnerId, partnerId), sql`${mailed.mailState} = 'queued'`))
    .as("last");
  const alert = { id, kind, subscriptionId, partnerId, raisedAt, cause, label, webhookUrl };
  return tx
    .select({ ...alert, settings: alertSettings, lastMailedAt: last.at })
    .from(alerts)
    .innerJoin(webhookSubscriptions, eq(webhookSubscriptions.id, subscriptionId))
    .leftJoin(alertSettings, eq(alertSettings.partnerId, alerts.partnerId))
    .crossJoinLateral(last)
    .where(and(sql`${mailState} = 'pending'`, anyOf(partnerId, partnerIds)))
    .orderBy(asc(id));
}

export type UnmailedRow = Awaited<ReturnType<typeof unmailedAlerts>>[number];

export async function markMailed(tx: Tx, ids: readonly string[], at: Date): Promise<void> {
  await tx.update(alerts).set({ mailState: "queued", mailedAt: at }).where(anyOf(alerts.id, ids));
}

/** How the mails of these partners look, and who their active owners are. */
export async function partnersOf(tx: Tx, partnerIds: readonly number[]) {
  const found = await tx
    .select({ id: companies.id, brandName, primaryColor, whiteLabelEnabled, name, email })
    .from(companies)
    .leftJoin(users, and(eq(companyId, companies.id), eq(role, "partner_owner"), isActive))
    .where(anyOf(companies.id, partnerIds))
    .orderBy(asc(users.id));
  return Map.groupBy(found, (one) => one.id);
}

export type PartnerRow =
  Awaited<ReturnType<typeof partnersOf>> extends Map<number, (infer Row)[]> ? Row : never;

/** Takes alerts whose POST is due, for so long that another process sends them should this one die. */
export async function claimPosts(
  db: Db,
  { at, againAt, limit }: { readonly at: Date; readonly againAt: Date; readonly limit: number },
) {
  const due = db
    .select({ id: alerts.id })
    .from(alerts)
    .where(and(sql`${alerts.webhookState} = 'queued'`, lte(alerts.webhookDueAt, at)))
    .orderBy(alerts.webhookDueAt)
    .limit(limit)
    .for("update", { skipLocked: true });
  const claimed = await db
    .update(alerts)
    .set({ webhookDueAt: againAt, webhookAttempt: sql`${alerts.webhookAttempt} + 1` })
    .where(inArray(alerts.id, due))
    .returning({ id: alerts.id });
  if (claimed.length === 0) return [];
  const ids = claimed.map((one) => one.id);
  const { id, label, webhookUrl: endpoint, deliveryKind } = webhookSubscriptions;
  return db
    .select({
      alert: alerts,
      subscription: { id, label, endpoint, deliveryKind },
      settings: alertSettings,
    })
    .from(alerts)
    .innerJoin(webhookSubscriptions, eq(id, alerts.subscriptionId))
    .leftJoin(alertSettings, eq(alertSettings.partnerId, alerts.partnerId))
    .where(anyOf(alerts.id, ids));
}

export type ClaimedPost = Awaited<ReturnType<typeof claimPosts>>[number];

/** Moves one on, if it is still at the attempt that was made. */
export async function movePost(
  db: Db,
  { id, webhookAttempt }: Pick<typeof alerts.$inferSelect, "id" | "webhookAttempt">,
  to: Pick<NewAlert, "webhookState" | "webhookDueAt" | "webhookError">,
): Promise<void> {
  await db
    .update(alerts)
    .set(to)
    .where(and(eq(alerts.id, id), eq(alerts.webhookAttempt, webhookAttempt)));
}
