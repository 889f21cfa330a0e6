import { and, desc, eq, isNull } from "drizzle-orm";
import { ulid } from "ulid";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { ulidFloor } from "../../../db/partitions.ts";
import { alerts, alertSettings, incidents } from "../../../db/schema/alerts.ts";
import { companies } from "../../../db/schema/companies.ts";
import { deliveryAttempts } from "../../../db/schema/attempts.ts";
import { isDisabledByPerson, type Subscription } from "../model.ts";
import { attemptsWithin, newestFirst } from "./attempts.ts";
import { FAILURES, troubleSince } from "./incidents.ts";

export type SettingsRow = typeof alertSettings.$inferSelect;

export async function settingsOf(db: DbOrTx, partnerId: number): Promise<SettingsRow | undefined> {
  const [row] = await db.select().from(alertSettings).where(eq(alertSettings.partnerId, partnerId));
  return row;
}

/** Locks the alert settings of the partner until the commit. Inserts `fresh` if the partner has none. */
export async function lockSettings(tx: Tx, fresh: SettingsRow): Promise<SettingsRow> {
  await tx.insert(alertSettings).values(fresh).onConflictDoNothing();
  const [row] = await tx
    .select()
    .from(alertSettings)
    .where(eq(alertSettings.partnerId, fresh.partnerId))
    .for("update");
  return row ?? fresh;
}

export async function updateSettings(
  tx: Tx,
  { id, ...changes }: Pick<SettingsRow, "id"> & Partial<SettingsRow>,
): Promise<void> {
  await tx.update(alertSettings).set(changes).where(eq(alertSettings.id, id));
}

/** Reads the name of a partner and the appearance of its mails. */
export async function brandOf(db: DbOrTx, partnerId: number) {
  const { name, brandName, primaryColor, whiteLabelEnabled } = companies;
  const [row] = await db
    .select({ name, brandName, primaryColor, whiteLabelEnabled })
    .from(companies)
    .where(eq(companies.id, partnerId));
  if (row === undefined) throw new Error(`There is no partner ${partnerId}.`);
  return row;
}

export type PartnerBrand = Awaited<ReturnType<typeof brandOf>>;

/** Adds an address to the confirmed recipients. Returns false if it is no recipient of the partner. */
export async function addConfirmed(tx: Tx, partnerId: number, email: string): Promise<boolean> {
  const [row] = await tx
    .select()
    .from(alertSettings)
    .where(eq(alertSettings.partnerId, partnerId))
    .for("update");
  if (row?.recipients?.includes(email) !== true) return false;
  const confirmedRecipients = [...new Set([...row.confirmedRecipients, email])];
  await updateSettings(tx, { id: row.id, confirmedRecipients });
  return true;
}

/** The number of failed attempts that an incident reads to find its causes. */
const MAX_ATTEMPTS = 1_000;

/** Reads failed attempts since an instant, the newest first. */
export function failuresSince(db: DbOrTx, subscriptionId: string, since: Date) {
  const { id, eventId, startedAt, statusCode, errorCode } = deliveryAttempts;
  const columns = { id, eventId, startedAt, statusCode, errorCode };
  const walks = FAILURES.map((outcome) =>
    attemptsWithin(db, columns, subscriptionId, { outcome, firstId: ulidFloor(since) })
      .orderBy(desc(id))
      .limit(MAX_ATTEMPTS),
  );
  return newestFirst(walks, MAX_ATTEMPTS);
}

/**
 * Records that a subscription was disabled, before it is enabled again. A dispatcher that has not noticed the
 * disabling in the meantime raises its alert from this record (contract 7.17). Disabling by a user raises no alert.
 */
export async function noteDisabling(tx: Tx, subscription: Subscription): Promise<void> {
  const {
    id,
    partnerId,
    consecutiveFailureCount: failures,
    disabledAt,
    disabledReason,
  } = subscription;
  if (disabledAt === null || isDisabledByPerson(disabledReason)) return;
  const beganAt = await troubleSince(tx, subscription);
  await tx
    .insert(incidents)
    .values({
      id: ulid(disabledAt.getTime()),
      subscriptionId: id,
      partnerId,
      openedAt: disabledAt,
      beganAt,
      disabledAt,
      failures,
      isTold: false,
    })
    .onConflictDoUpdate({
      target: incidents.subscriptionId,
      targetWhere: isNull(incidents.endedAt),
      set: { disabledAt, failures, beganAt },
      setWhere: isNull(incidents.disabledAt),
    });
}

/** Reads the alerts of the open incident. */
export function openAlerts(db: DbOrTx, subscriptionId: string) {
  const { kind, raisedAt } = alerts;
  return db
    .select({ kind, raisedAt })
    .from(incidents)
    .innerJoin(alerts, eq(alerts.incidentId, incidents.id))
    .where(and(eq(incidents.subscriptionId, subscriptionId), isNull(incidents.endedAt)));
}
