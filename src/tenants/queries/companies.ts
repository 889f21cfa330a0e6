import { and, desc, eq, ne, or, sql, inArray, gte, type SQL } from "drizzle-orm";
import type { AnyPgColumn } from "drizzle-orm/pg-core";

import type { DbOrTx, Tx } from "../../../db/client.ts";
import { arrayOf, idBefore } from "../../../db/conditions.ts";
import { alertSettings } from "../../../db/schema/alerts.ts";
import { companies, plans as planTable, stores, users } from "../../../db/schema/companies.ts";
import { storeReviewSites } from "../../../db/schema/providers.ts";
import { portalSettings } from "../../../db/schema/tokens.ts";
import { onlyRow } from "../../../db/statement.ts";
import { isPartnerOfCompany, partners } from "../../auth/access/queries.ts";
import type { Page } from "../../http/list.ts";
import { parseInstant } from "../../lib/clock.ts";
import type { AccountQuery, Company, Named } from "../model.ts";

function selectCompanies(db: DbOrTx) {
  const { id, name, isActive, primaryColor, logoUrl, externalId, createdAt, updatedAt } = companies;
  const { brandName, whiteLabelDomain, whiteLabelEnabled, partnerId, planId, requireSecondFactor } =
    companies;
  const ownStores = eq(stores.accountId, id);
  return db
    .select({
      id,
      name,
      isActive,
      primaryColor,
      logoUrl,
      externalId,
      createdAt,
      updatedAt,
      brandName,
      domain: whiteLabelDomain,
      whiteLabelEnabled,
      requireSecondFactor,
      partnerId,
      partnerName: partners.name,
      planId,
      planName: planTable.name,
      storeIds: arrayOf(
        db.select({ id: stores.id }).from(stores).where(ownStores).orderBy(stores.id),
      ),
      storeNames: arrayOf(
        db.select({ name: stores.name }).from(stores).where(ownStores).orderBy(stores.id),
      ),
    })
    .from(companies)
    .leftJoin(planTable, eq(planTable.id, planId))
    .leftJoin(partners, isPartnerOfCompany);
}

type CompanyRow = Awaited<ReturnType<typeof selectCompanies>>[number];

function companyOf({ storeIds, storeNames, ...row }: CompanyRow, type: Company["type"]): Company {
  return { ...row, type, stores: storeIds.map((id, i) => ({ id, name: storeNames[i] ?? "" })) };
}

/** Lists companies, newest first. */
export async function companiesOf(
  db: DbOrTx,
  type: Company["type"],
  {
    partner_id: partnerId,
    plan_id: planId,
    name,
    is_active: isActive,
    updated_since: since,
  }: Omit<AccountQuery, "limit" | "cursor">,
  page: Page,
): Promise<Company[]> {
  const conditions = [
    // Only accounts have a plan. Without statistics, a condition on the type leads the planner away from the index.
    planId === undefined ? eq(companies.type, type) : eq(companies.planId, planId),
    partnerId === undefined ? undefined : eq(companies.partnerId, partnerId),
    name === undefined ? undefined : sql`position(lower(${name}) in lower(${companies.name})) > 0`,
    isActive === undefined ? undefined : eq(companies.isActive, isActive === "true"),
    changedSince(companies.updatedAt, since),
    idBefore(companies.id, page.after),
  ];
  const rows = await selectCompanies(db)
    .where(and(...conditions))
    .orderBy(desc(companies.id))
    .limit(page.limit + 1);
  return rows.map((row) => companyOf(row, type));
}

/** Reads a company of a type, by its id or by the platform's external id. */
export async function companyBy(
  db: DbOrTx,
  type: Company["type"],
  by: Wanted,
): Promise<Company | undefined> {
  const [row] = await selectCompanies(db).where(
    and(isWanted(companies, by), eq(companies.type, type)),
  );
  return row && companyOf(row, type);
}

export const companyById = (db: DbOrTx, type: Company["type"], id: number) =>
  companyBy(db, type, { id });

export async function nameOfCompany(
  db: DbOrTx,
  wanted: number,
): Promise<(Named & { readonly type: string }) | undefined> {
  const { id, type, name } = companies;
  const [row] = await db.select({ id, type, name }).from(companies).where(eq(id, wanted));
  return row;
}

export interface NewCompanyRow {
  readonly type: Company["type"];
  readonly name: string;
  readonly primaryColor: string;
  readonly logoUrl: string | null;
  readonly brandName: string | null;
  readonly domain: string | null;
  readonly partnerId: number | null;
  readonly planId: number | null;
  readonly externalId: string | null;
  readonly createdAt: Date;
}

export async function insertCompany(tx: Tx, { domain, ...one }: NewCompanyRow): Promise<number> {
  const whiteLabelEnabled = one.brandName !== null;
  const rows = await tx
    .insert(companies)
    .values({ ...one, whiteLabelEnabled, whiteLabelDomain: domain })
    .returning({ id: companies.id });
  return onlyRow(rows).id;
}

export async function updateCompany(
  tx: Tx,
  id: number,
  changes: Changes<typeof companies.$inferInsert>,
): Promise<void> {
  await tx.update(companies).set(changes).where(eq(companies.id, id));
}

/** Returns whether a company requires a second factor for its users. */
export async function requiresSecondFactor(db: DbOrTx, id: number): Promise<boolean> {
  const { requireSecondFactor } = companies;
  const [row] = await db
    .select({ requireSecondFactor })
    .from(companies)
    .where(eq(companies.id, id));
  return row?.requireSecondFactor ?? false;
}

/**
 * Deletes a company with its alert and portal settings. Throws an error if a row of another table refers to the
 * company.
 */
export async function deleteCompany(tx: Tx, id: number): Promise<void> {
  await tx.delete(alertSettings).where(eq(alertSettings.partnerId, id));
  await tx.delete(portalSettings).where(eq(portalSettings.partnerId, id));
  await tx.delete(companies).where(eq(companies.id, id));
}

/** Returns whether a partner other than `except` has the white-label domain. */
export async function hasDomain(db: DbOrTx, domain: string, except = 0): Promise<boolean> {
  const isOthers = and(eq(companies.whiteLabelDomain, domain), ne(companies.id, except));
  return (await db.$count(companies, isOthers)) > 0;
}

export async function insertStores(
  tx: Tx,
  { id: accountId, partnerId }: { id: number; partnerId: number },
  names: readonly string[],
): Promise<void> {
  const rows = names.map((name) => ({ accountId, partnerId, name }));
  if (rows.length > 0) await tx.insert(stores).values(rows);
}

/** Activates or deactivates a company. Returns false if the company is already in that state. */
export async function setCompanyActive(
  tx: Tx,
  { id, type }: Pick<Company, "id" | "type">,
  isActive: boolean,
): Promise<boolean> {
  const isOther = ne(companies.isActive, isActive);
  const { count } = await tx
    .update(companies)
    .set({ isActive })
    .where(and(eq(companies.id, id), eq(companies.type, type), isOther));
  return count > 0;
}

/** Returns the ids of a company and, if it is a partner, of its accounts. These companies are deactivated together. */
export async function treeOf(tx: Tx, wanted: number): Promise<number[]> {
  const { id, partnerId } = companies;
  const rows = await tx
    .select({ id })
    .from(companies)
    .where(or(eq(id, wanted), eq(partnerId, wanted)))
    .orderBy(id);
  return rows.map((row) => row.id);
}

/** The kinds of records that belong to a tenant. */
export type OwnedKind = "company" | "user" | "store" | "connection";

/** Finds the company that a record belongs to; undefined if the record does not exist. */
export async function companyOfRecord(
  db: DbOrTx,
  kind: OwnedKind,
  id: number,
): Promise<number | undefined> {
  const [company] = await db
    .select({ id: companies.id })
    .from(companies)
    .where(inArray(companies.id, idOfCompany(db, kind, id)));
  return company?.id;
}

function idOfCompany(db: DbOrTx, kind: OwnedKind, id: number) {
  switch (kind) {
    case "company":
      return [id];
    case "user":
      return db.select({ id: users.companyId }).from(users).where(eq(users.id, id));
    case "store":
      return db.select({ id: stores.accountId }).from(stores).where(eq(stores.id, id));
    case "connection":
      return db
        .select({ id: stores.accountId })
        .from(storeReviewSites)
        .innerJoin(stores, eq(stores.id, storeReviewSites.storeId))
        .where(eq(storeReviewSites.id, id));
  }
}

/** Returns the condition that a record changed at the instant `since` or later; undefined if `since` is absent. */
export function changedSince(updatedAt: AnyPgColumn, since: string | undefined): SQL | undefined {
  const at = parseInstant(since);
  return at && gte(updatedAt, at);
}

/** New values of columns. A column whose value is undefined does not change. */
export type Changes<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** The key by which a record is read: its id, or the external id that the platform gave it. */
export type Wanted = { readonly id: number } | { readonly externalId: string };

/** Matches the record with this id or external id. */
export function isWanted(
  table: Readonly<Record<"id" | "externalId", AnyPgColumn>>,
  wanted: Wanted,
): SQL {
  return "id" in wanted ? eq(table.id, wanted.id) : eq(table.externalId, wanted.externalId);
}
