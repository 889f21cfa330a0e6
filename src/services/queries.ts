import { and, desc, eq, gt, or, isNull } from "drizzle-orm";

import { anyOf, idBefore, instantBefore } from "../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../db/client.ts";
import { companies, serviceActions, services, users } from "../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../db/schema/providers.ts";
import { reviews } from "../../db/schema/reviews.ts";
import { tokens } from "../../db/schema/tokens.ts";
import { neverNull, onlyRow } from "../../db/statement.ts";
import type { Page } from "../http/list.ts";
import type { Service, ServiceToken } from "./model.ts";

const { id, scopes, partnerIds } = services;
const { name, createdAt, updatedAt } = users;

const selectServices = (db: DbOrTx) =>
  db
    .select({ id, name, scopes, partnerIds, createdAt, updatedAt })
    .from(services)
    .innerJoin(users, eq(users.id, id));

/** Lists services, newest first. */
export function servicesOf(db: DbOrTx, page: Page): Promise<Service[]> {
  return selectServices(db)
    .where(and(idBefore(id, page.after), users.isActive))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}

export async function serviceById(db: DbOrTx, wanted: number): Promise<Service | undefined> {
  const [row] = await selectServices(db).where(and(eq(id, wanted), users.isActive));
  return row;
}

/** Inserts a service and the user that it acts as. The email is an address that no mail can reach (RFC 6761, 6.4). */
export async function insertService(
  tx: Tx,
  one: Pick<Service, "name" | "scopes" | "partnerIds" | "createdAt"> & {
    readonly companyId: number;
    readonly key: string;
  },
): Promise<number> {
  const { companyId, key, createdAt: at } = one;
  const user = {
    companyId,
    name: one.name,
    role: "service",
    createdAt: at,
    updatedAt: at,
  } as const;
  const email = `${key}@service.invalid`;
  const rows = await tx
    .insert(users)
    .values({ ...user, email })
    .returning({ id: users.id });
  const { id: serviceId } = onlyRow(rows);
  await tx.insert(services).values({
    id: serviceId,
    scopes: [...one.scopes],
    partnerIds: one.partnerIds && [...one.partnerIds],
  });
  return serviceId;
}

export async function updateService(
  tx: Tx,
  wanted: number,
  one: Pick<Service, "name" | "scopes" | "partnerIds" | "updatedAt">,
): Promise<void> {
  await tx
    .update(users)
    .set({ name: one.name, updatedAt: one.updatedAt })
    .where(eq(users.id, wanted));
  const lists = { scopes: [...one.scopes], partnerIds: one.partnerIds && [...one.partnerIds] };
  await tx.update(services).set(lists).where(eq(id, wanted));
}

/** Ends a service, by deactivating its user. Returns false if it has ended already. */
export async function endService(tx: Tx, wanted: number, now: Date): Promise<boolean> {
  const isOne = and(eq(users.id, wanted), eq(users.role, "service"), users.isActive);
  return (await tx.update(users).set({ isActive: false, updatedAt: now }).where(isOne)).count > 0;
}

/** Returns those of the ids that are not partners. */
export async function unknownPartners(db: DbOrTx, ids: readonly number[]): Promise<number[]> {
  const rows = await db
    .select({ id: companies.id })
    .from(companies)
    .where(and(anyOf(companies.id, ids), eq(companies.type, "partner")));
  const known = new Set(rows.map((row) => row.id));
  return ids.filter((one) => !known.has(one));
}

const isLive = (serviceId: number, now: Date) =>
  and(
    eq(tokens.userId, serviceId),
    eq(tokens.kind, "service"),
    or(isNull(tokens.expiresAt), gt(tokens.expiresAt, now)),
  );
const TOKEN = {
  id: tokens.jti,
  name: tokens.name,
  createdAt: tokens.issuedAt,
  expiresAt: tokens.expiresAt,
  lastUsedAt: tokens.lastUsedAt,
};

/** Lists the tokens of a service that have not ended, newest first. */
export async function tokensOf(
  db: DbOrTx,
  serviceId: number,
  { now, page }: { readonly now: Date; readonly page: Page },
): Promise<ServiceToken[]> {
  const rows = await db
    .select(TOKEN)
    .from(tokens)
    .where(and(isLive(serviceId, now), instantBefore(tokens.issuedAt, tokens.jti, page.after)))
    .orderBy(desc(tokens.issuedAt), desc(tokens.jti))
    .limit(page.limit + 1);
  return rows.map((row) => ({
    ...row,
    name: neverNull(row.name),
    expiresAt: neverNull(row.expiresAt),
  }));
}

export function countTokens(db: DbOrTx, serviceId: number, now: Date): Promise<number> {
  return db.$count(tokens, isLive(serviceId, now));
}

/** Returns whether the service has a token with this id. */
export async function hasToken(db: DbOrTx, serviceId: number, jti: string): Promise<boolean> {
  const isOne = and(eq(tokens.userId, serviceId), eq(tokens.kind, "service"), eq(tokens.jti, jti));
  return (await db.$count(tokens, isOne)) > 0;
}

// ------------------------------------------------------------------------------------------------ actions

/** Claims ids of actions; returns those that the service has not used before. */
export async function claimActions(
  tx: Tx,
  serviceId: number,
  ids: readonly string[],
  takenAt: Date,
): Promise<Set<string>> {
  const rows = await tx
    .insert(serviceActions)
    // In one order, so that two requests with the same ids cannot deadlock.
    .values(ids.toSorted().map((one) => ({ serviceId, id: one, takenAt })))
    .onConflictDoNothing()
    .returning({ id: serviceActions.id });
  return new Set(rows.map((row) => row.id));
}

const SITE = {
  id: storeReviewSites.id,
  storeId: storeReviewSites.storeId,
  accountId: storeReviewSites.accountId,
  partnerId: storeReviewSites.partnerId,
  reviewSiteId: storeReviewSites.reviewSiteId,
  slug: reviewSites.slug,
  name: reviewSites.name,
  pullConnected: storeReviewSites.pullConnected,
  pullErrorCode: storeReviewSites.pullErrorCode,
  postConnected: storeReviewSites.postConnected,
  postErrorCode: storeReviewSites.postErrorCode,
};
const selectSites = (db: DbOrTx) =>
  db
    .select(SITE)
    .from(storeReviewSites)
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId));

/** A connection of a store with its review site. */
export type SiteRow = Awaited<ReturnType<typeof selectSites>>[number];

/** Reads connections; `locked` locks them until the commit, in the order of their ids. */
export function sitesOf(db: DbOrTx, ids: readonly number[], locked: boolean): Promise<SiteRow[]> {
  const query = selectSites(db).where(anyOf(storeReviewSites.id, ids)).orderBy(storeReviewSites.id);
  return locked ? query.for("no key update", { of: storeReviewSites }) : query;
}

/** Reads which tenant each review belongs to. */
export function placesOf(db: DbOrTx, ids: readonly number[]) {
  const { id: reviewId, partnerId, accountId } = reviews;
  return db
    .select({ id: reviewId, partnerId, accountId })
    .from(reviews)
    .where(anyOf(reviewId, ids));
}

/** Reads the active users who act, and the first active owner of each account, on whose behalf staff acts. */
export async function actorsOf(
  db: DbOrTx,
  {
    userIds,
    accountIds,
  }: { readonly userIds: readonly number[]; readonly accountIds: readonly number[] },
) {
  const columns = { id: users.id, name: users.name, companyId: users.companyId };
  const people =
    userIds.length === 0
      ? []
      : await db.select(columns).from(users).where(anyOf(users.id, userIds));
  const owners =
    accountIds.length === 0
      ? []
      : await db
          .selectDistinctOn([users.companyId], columns)
          .from(users)
          .where(
            and(
              anyOf(users.companyId, accountIds),
              eq(users.role, "account_owner"),
              users.isActive,
            ),
          )
          .orderBy(users.companyId, users.id);
  return {
    users: new Map(people.map((one) => [one.id, one])),
    owners: new Map(owners.map((one) => [one.companyId, one])),
  };
}

/** Stores the state of an axis of a connection. */
export async function updateSite(
  tx: Tx,
  siteId: number,
  changes: Partial<
    Pick<SiteRow, "pullConnected" | "pullErrorCode" | "postConnected" | "postErrorCode">
  >,
): Promise<void> {
  await tx.update(storeReviewSites).set(changes).where(eq(storeReviewSites.id, siteId));
}
