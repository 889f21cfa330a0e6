import { and, desc, eq, lt, ne, not, sql } from "drizzle-orm";

import { anyOf } from "../../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../../db/client.ts";
import { companies } from "../../../db/schema/companies.ts";
import { ssoConnections, ssoDomains } from "../../../db/schema/sign-in.ts";
import type { Page } from "../../http/list.ts";
import { fromMs } from "../../lib/clock.ts";
import type { Connection } from "../model.ts";
import { isPartnerOfCompany, isTenantActive, partners } from "../../auth/access/queries.ts";

/** An SSO connection that can be used now, with its encrypted client secret. */
export interface LiveConnection extends Connection {
  readonly sealedClientSecret: string;
}

const { id: connectionId, companyId, issuer, clientId } = ssoConnections;
const { passwordLogin, trustEmail, isActive, createdAt, updatedAt } = ssoConnections;
const { newUserRole, newUserStoreIds } = ssoConnections;

/** Selects the columns of an SSO connection without the client secret. */
function connectionColumns() {
  const domain = sql`json_build_object('domain', domain, 'provedMs', extract(epoch from proved_at) * 1000) order by domain`;
  const domains = sql`(select coalesce(json_agg(${domain}), '[]') from ${ssoDomains}
    where ${eq(ssoDomains.connectionId, connectionId)})`.mapWith(readDomains);
  return {
    id: connectionId,
    companyId,
    issuer,
    clientId,
    domains,
    passwordLogin,
    trustEmail,
    isActive,
    newUserRole,
    newUserStoreIds,
    createdAt,
    updatedAt,
  };
}

function readDomains(rows: { domain: string; provedMs: number | null }[]) {
  return rows.map(({ domain, provedMs }) => ({
    domain,
    provedAt: provedMs === null ? null : fromMs(provedMs),
  }));
}

/**
 * Finds an SSO connection that can be used now: the SSO connection, its company and the company's partner are active.
 */
export async function findLiveConnection(
  db: DbOrTx,
  by: { id: string } | { domain: string },
): Promise<LiveConnection | undefined> {
  const wanted = "id" in by ? by.id : connectionOfDomain(db, by.domain);
  const [row] = await db
    .select({
      ...connectionColumns(),
      sealedClientSecret: ssoConnections.sealedClientSecret,
    })
    .from(ssoConnections)
    .innerJoin(companies, eq(companies.id, companyId))
    .leftJoin(partners, isPartnerOfCompany)
    .where(and(eq(connectionId, wanted), isActive, isTenantActive));
  return row;
}

function connectionOfDomain(db: DbOrTx, domain: string) {
  const { connectionId: id } = ssoDomains;
  return db.select({ id }).from(ssoDomains).where(eq(ssoDomains.domain, domain));
}

/**
 * Locks the SSO connection against changes until the commit. Returns false if the SSO connection is missing or not
 * active. `seen` is the `updatedAt` of an earlier read. If it is given, the function also returns false if the SSO
 * connection was updated after that read.
 */
export async function shareConnection(tx: Tx, id: string, seen?: Date): Promise<boolean> {
  const [row] = await tx
    .select({ isActive, updatedAt })
    .from(ssoConnections)
    .where(eq(connectionId, id))
    .for("key share");
  const isSame = seen === undefined || row?.updatedAt.getTime() === seen.getTime();
  return isSame && (row?.isActive ?? false);
}

/** Lists SSO connections, newest first. */
export function listConnections(
  db: DbOrTx,
  ownerId: number | undefined,
  page: Page,
): Promise<Connection[]> {
  const ofCompany = ownerId === undefined ? undefined : eq(companyId, ownerId);
  const isAfterCursor = page.after === undefined ? undefined : lt(connectionId, page.after);
  return db
    .select(connectionColumns())
    .from(ssoConnections)
    .where(and(ofCompany, isAfterCursor))
    .orderBy(desc(connectionId))
    .limit(page.limit + 1);
}

export async function findConnection(db: DbOrTx, id: string): Promise<Connection | undefined> {
  const [row] = await db
    .select(connectionColumns())
    .from(ssoConnections)
    .where(eq(connectionId, id));
  return row;
}

/**
 * Locks the SSO connection until the commit, so that concurrent updates and deletions of it run one after the other.
 */
export async function holdConnection(tx: Tx, id: string): Promise<Connection | undefined> {
  const [row] = await tx
    .select(connectionColumns())
    .from(ssoConnections)
    .where(eq(connectionId, id))
    .for("update", { of: ssoConnections });
  return row;
}

export async function insertConnection(
  tx: Tx,
  row: typeof ssoConnections.$inferSelect,
): Promise<void> {
  await tx.insert(ssoConnections).values(row);
}

type ConnectionColumns = Omit<Connection, "domains" | "companyId" | "createdAt">;

/** Updates an SSO connection. The old client secret stays if the changes contain no new secret. */
export async function updateConnection(
  tx: Tx,
  { id, sealedClientSecret, ...row }: ConnectionColumns & { sealedClientSecret: string | null },
): Promise<void> {
  const changed = {
    issuer: row.issuer,
    clientId: row.clientId,
    passwordLogin: row.passwordLogin,
    trustEmail: row.trustEmail,
    isActive: row.isActive,
    newUserRole: row.newUserRole,
    newUserStoreIds: row.newUserStoreIds,
    updatedAt: row.updatedAt,
  };
  await tx
    .update(ssoConnections)
    .set(sealedClientSecret === null ? changed : { ...changed, sealedClientSecret })
    .where(eq(connectionId, id));
}

/**
 * Deletes an SSO connection. Foreign keys delete its domains, its users' identities, and its states and one-time codes.
 */
export async function deleteConnection(tx: Tx, id: string): Promise<void> {
  await tx.delete(ssoConnections).where(eq(connectionId, id));
}

/** Deletes the domains of an SSO connection, except those in `kept`, which keep their proofs. */
export async function deleteDomains(
  tx: Tx,
  ownerId: string,
  kept: readonly string[],
): Promise<void> {
  const isOwn = eq(ssoDomains.connectionId, ownerId);
  await tx.delete(ssoDomains).where(and(isOwn, not(anyOf(ssoDomains.domain, kept))));
}

/**
 * Stores the time of the proof of a domain. Returns false if the domain does not belong to the SSO connection any more.
 */
export async function saveProof(
  tx: Tx,
  { id, domain, now }: { readonly id: string; readonly domain: string; readonly now: Date },
): Promise<boolean> {
  const isOwn = and(eq(ssoDomains.connectionId, id), eq(ssoDomains.domain, domain));
  return (await tx.update(ssoDomains).set({ provedAt: now }).where(isOwn)).count > 0;
}

/**
 * Inserts those email domains that belong to no SSO connection yet, and returns them. They are inserted in sorted
 * order, so that two transactions with overlapping lists cannot deadlock.
 */
export async function insertDomains(
  tx: Tx,
  ownerId: string,
  domains: readonly string[],
): Promise<string[]> {
  const wanted = domains.toSorted().map((domain) => ({ domain, connectionId: ownerId }));
  if (wanted.length === 0) return [];
  const rows = await tx
    .insert(ssoDomains)
    .values(wanted)
    .onConflictDoNothing()
    .returning({ domain: ssoDomains.domain });
  return rows.map(({ domain }) => domain);
}

/** Returns those of the given email domains that belong to an SSO connection other than `ownId`. */
export async function domainsOfOthers(
  db: DbOrTx,
  domains: readonly string[],
  ownId: string | undefined,
): Promise<string[]> {
  const isOfOther = ownId === undefined ? undefined : ne(ssoDomains.connectionId, ownId);
  const rows = await db
    .select({ domain: ssoDomains.domain })
    .from(ssoDomains)
    .where(and(anyOf(ssoDomains.domain, domains), isOfOther))
    .orderBy(ssoDomains.domain);
  return rows.map(({ domain }) => domain);
}

export async function findCompanyType(db: DbOrTx, id: number): Promise<string | undefined> {
  const { type } = companies;
  const [row] = await db.select({ type }).from(companies).where(eq(companies.id, id));
  return row?.type;
}
