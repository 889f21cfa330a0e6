import { and, desc, eq, sql, type SQL } from "drizzle-orm";

import { anyOf, idAfter, idBefore } from "../../db/conditions.ts";
import type { DbOrTx, Tx } from "../../db/client.ts";
import { measuring } from "../../db/measure.ts";
import { ownId } from "../../db/own-ids.ts";
import { companies, inbox, serviceActions, services, users } from "../../db/schema/companies.ts";
import { reviewSites, storeReviewSites } from "../../db/schema/providers.ts";
import { reviews } from "../../db/schema/reviews.ts";
import {
  instant,
  onlyRow,
  rows as rowsOf,
  statement,
  value,
  type ValuesOf,
} from "../../db/statement.ts";
import { tryLock } from "../../db/server.ts";
import { endingEarly, type Found, type Page } from "../http/list.ts";
import type { InboxRow, Service } from "./model.ts";
import { MAX_ACTION_BYTES } from "./sizes.ts";

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

/** Locks a service until the commit, and reads it. */
export async function lockService(tx: Tx, wanted: number): Promise<Service | undefined> {
  const isOne = and(eq(users.id, wanted), eq(users.role, "service"));
  await tx.select({ id: users.id }).from(users).where(isOne).for("no key update");
  return serviceById(tx, wanted);
}

/** Reads services that have not ended. */
export function servicesById(db: DbOrTx, ids: readonly number[]): Promise<Service[]> {
  return selectServices(db).where(and(anyOf(id, ids), users.isActive));
}

/**
 * Inserts a service and the user that it acts as, with an id of `ownId`. The email is an address that no mail can reach
 * (RFC 6761, 6.4).
 */
export async function insertService(
  tx: Tx,
  one: Pick<Service, "name" | "scopes" | "partnerIds" | "createdAt"> & {
    readonly companyId: number;
    readonly key: string;
  },
): Promise<number> {
  const { companyId, key, createdAt: at } = one;
  const serviceId = await ownId(tx, users);
  const user = {
    id: serviceId,
    companyId,
    name: one.name,
    role: "service",
    createdAt: at,
    updatedAt: at,
  } as const;
  const email = `${key}@service.invalid`;
  await tx
    .insert(users)
    .overridingSystemValue()
    .values({ ...user, email });
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

// ------------------------------------------------------------------------------------------------ actions

const CLAIM = { serviceId: serviceActions.serviceId, id: serviceActions.id };

const claims = statement({
  name: "services.claimActions",
  // Raw SQL, because up to 500 rows are one parameter, inserted in one order, so that two requests with the same ids
  // cannot deadlock.
  params: { given: rowsOf(CLAIM), takenAt: instant },
  columns: CLAIM,
  text: ({ given, takenAt }) => sql`
    insert into service_actions as a (service_id, id, taken_at)
    select given."serviceId", given.id, ${takenAt} from ${given} order by given."serviceId", given.id
    on conflict do nothing
    returning a.service_id as "serviceId", a.id`,
});

/** Claims ids of actions; returns those that their services have not used before. */
export const claimActions = (tx: Tx, given: readonly ValuesOf<typeof CLAIM>[], takenAt: Date) =>
  tx.run(claims, { given, takenAt });

/** Gives claimed ids back, in the transaction that claimed them. */
export async function dropClaims(tx: Tx, given: readonly ValuesOf<typeof CLAIM>[]): Promise<void> {
  for (const [serviceId, own] of Map.groupBy(given, (one) => one.serviceId)) {
    const ids = own.map((one) => one.id);
    await tx
      .delete(serviceActions)
      .where(and(eq(CLAIM.serviceId, serviceId), anyOf(CLAIM.id, ids)));
  }
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

/**
 * Reads connections, and locks them until the commit in the order of their ids. "locked if free" leaves out those that
 * another transaction has locked.
 */
export function sitesOf(
  db: DbOrTx,
  ids: readonly number[],
  lock: "unlocked" | "locked" | "locked if free",
): Promise<SiteRow[]> {
  const query = selectSites(db).where(anyOf(storeReviewSites.id, ids)).orderBy(storeReviewSites.id);
  const skipLocked = lock === "locked if free";
  if (lock === "unlocked") return query;
  return query.for("no key update", { of: storeReviewSites, ...(skipLocked && { skipLocked }) });
}

/** Reads which tenant and review site each review belongs to. */
export function placesOf(db: DbOrTx, ids: readonly number[]) {
  const { id: reviewId, partnerId, accountId } = reviews;
  return db
    .select({ id: reviewId, partnerId, accountId, slug: reviewSites.slug })
    .from(reviews)
    .innerJoin(storeReviewSites, eq(storeReviewSites.id, reviews.storeReviewSiteId))
    .innerJoin(reviewSites, eq(reviewSites.id, storeReviewSites.reviewSiteId))
    .where(anyOf(reviewId, ids));
}

const PERSON = { id: users.id, name: users.name, companyId: users.companyId };

/** A user who acts, or to whom a review is assigned. */
export type Person = Awaited<ReturnType<typeof peopleOf>>[number];

export function peopleOf(db: DbOrTx, ids: readonly number[]) {
  return db.select(PERSON).from(users).where(anyOf(users.id, ids));
}

/** Reads the first active owner of each account, on whose behalf staff acts. */
export function ownersOf(db: DbOrTx, accountIds: readonly number[]) {
  const { companyId, role, isActive } = users;
  return db
    .selectDistinctOn([companyId], PERSON)
    .from(users)
    .where(and(anyOf(companyId, accountIds), eq(role, "account_owner"), isActive))
    .orderBy(companyId, users.id);
}

// ------------------------------------------------------------------------------------------------ inbox

/** The most partners whose actions one round takes over. */
const PARTNERS_PER_ROUND = 1_000;

const nextPartner = (after: SQL) => sql`(select partner_id from inbox
                where state = 'waiting' and partner_id > ${after} order by partner_id limit 1)`;

const waitingPartners = statement({
  name: "inbox.partners",
  // Raw SQL, because the statement jumps from one partner to the next, however many actions each has.
  params: { limit: value("bigint") },
  columns: { id: inbox.partnerId },
  text: ({ limit }) => sql`
    with recursive found as (
      select ${nextPartner(sql`-1`)} as id
       union all
      select ${nextPartner(sql`found.id`)} from found where id is not null
    )
    select id from found where id is not null limit ${limit}`,
});

/** Returns the partners with waiting actions. */
export async function inboxPartners(db: DbOrTx): Promise<number[]> {
  const rows = await db.run(waitingPartners, { limit: PARTNERS_PER_ROUND });
  return rows.map((row) => row.id);
}

/** Locks the taking over of a partner's actions until the commit. Returns false if another process does it. */
export const lockInbox = (tx: Tx, partnerId: number): Promise<boolean> =>
  tryLock(tx, "inboxOfPartner", partnerId);

const measureActions = measuring("inbox.measure", {
  id: inbox.position,
  bytes: sql`octet_length(${inbox.action}::text)`,
});

/**
 * Reads the actions of rows in their order, as many as a statement may read, so that the result may be shorter. An action of
 * more than `MAX_ACTION_BYTES`, which is from before that limit, is not read.
 */
async function withActions<R extends { readonly position: number }>(
  db: DbOrTx,
  rows: readonly R[],
) {
  const measured = await measureActions(
    db,
    rows.map((one) => one.position),
  );
  const small = measured.flatMap(({ id: at, bytes }) =>
    at !== null && bytes !== null && bytes <= MAX_ACTION_BYTES ? [at] : [],
  );
  const { position: at, action: found } = inbox;
  const read = await db.select({ at, found }).from(inbox).where(anyOf(at, small));
  const actions = new Map(read.map((one) => [one.at, one.found]));
  return measured.flatMap(({ bytes }, i) => {
    const row = rows[i];
    // A row that was removed in the meantime has no size.
    if (row === undefined || bytes === null) return [];
    const isTooLarge = bytes > MAX_ACTION_BYTES;
    return [{ ...row, action: actions.get(row.position) ?? null, isTooLarge }];
  });
}

/** Reads the next waiting actions of a partner in the order of their commits, and locks at most `limit` of them. */
export async function nextOfInbox(tx: Tx, partnerId: number, limit: number) {
  const rows = await tx
    .select({ position: inbox.position, serviceId: inbox.serviceId })
    .from(inbox)
    .where(and(eq(inbox.state, "waiting"), eq(inbox.partnerId, partnerId)))
    .orderBy(inbox.position)
    .limit(limit)
    .for("update");
  return withActions(tx, rows);
}

/** Returns the position of the first waiting action of a partner, without a look at its content. */
export async function firstOfInbox(db: DbOrTx, partnerId: number): Promise<number | undefined> {
  const [row] = await db
    .select({ position: inbox.position })
    .from(inbox)
    .where(and(eq(inbox.state, "waiting"), eq(inbox.partnerId, partnerId)))
    .orderBy(inbox.position)
    .limit(1);
  return row?.position;
}

export async function deleteFromInbox(tx: DbOrTx, positions: readonly number[]): Promise<number> {
  if (positions.length === 0) return 0;
  return (await tx.delete(inbox).where(anyOf(inbox.position, positions))).count;
}

/** Sets a waiting action aside with its errors, so that the others go on. */
export async function rejectInInbox(
  tx: Tx,
  wanted: number,
  given: Readonly<Record<string, string>>,
): Promise<void> {
  const isWaiting = and(eq(inbox.position, wanted), eq(inbox.state, "waiting"));
  await tx.update(inbox).set({ state: "rejected", errors: given }).where(isWaiting);
}

const { position, serviceId, partnerId: ofPartner, state, errors, insertedAt } = inbox;

/**
 * Lists the actions of the inbox in a state, the oldest first. The page ends early if its actions are large; `end` is then
 * the position of its last row.
 */
export async function inboxOf(
  db: DbOrTx,
  wanted: InboxRow["state"],
  page: Page,
): Promise<Found<InboxRow>> {
  const all = await db
    .select({ position, serviceId, partnerId: ofPartner, state, errors, insertedAt })
    .from(inbox)
    .where(and(eq(state, wanted), idAfter(position, page.after)))
    .orderBy(position)
    .limit(page.limit + 1);
  const rows = await withActions(db, all);
  return endingEarly({ rows, isCut: rows.length < all.length }, (row) => String(row.position));
}

const countOf = (wanted: InboxRow["state"]) =>
  sql`(select count(*) from (select from ${inbox} where state = ${wanted} limit 10000) few)`.mapWith(
    Number,
  );

/** Counts the actions of the inbox, up to 10,000 of each state, and reads the time of the oldest waiting one. */
export async function inboxStatus(db: DbOrTx) {
  const counts = { waiting: countOf("waiting"), rejected: countOf("rejected") };
  const [first] = await db
    .select({ insertedAt })
    .from(inbox)
    .where(eq(state, "waiting"))
    .orderBy(position)
    .limit(1);
  const { waiting, rejected } = onlyRow(await db.select(counts).from(sql`(select 1) one`));
  return { waiting, rejected, oldestWaitingAt: first?.insertedAt ?? null };
}

/** Puts a rejected action back among the waiting ones. Returns false if there is none at the position. */
export async function retryInInbox(tx: Tx, wanted: number): Promise<boolean> {
  const isRejected = and(eq(position, wanted), eq(state, "rejected"));
  return (
    (await tx.update(inbox).set({ state: "waiting", errors: null }).where(isRejected)).count > 0
  );
}

/** Deletes a waiting or rejected action. Returns its state; undefined if there is none at the position. */
export async function dropFromInbox(tx: Tx, wanted: number) {
  const [row] = await tx.delete(inbox).where(eq(position, wanted)).returning({ state });
  return row?.state;
}
