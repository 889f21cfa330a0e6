import { and, asc, desc, eq, gte, lt, lte, ne, or, sql, type SQL, gt } from "drizzle-orm";

import type { DbOrTx, Tx } from "../../db/client.ts";
import { anyOf, idAfter, idBefore } from "../../db/conditions.ts";
import { auditLog, companies, users, auditWebhooks } from "../../db/schema/companies.ts";
import { waitForLock } from "../../db/server.ts";
import { onlyRow } from "../../db/statement.ts";
import type { Found, Page } from "../http/list.ts";
import type { Principal } from "../http/principal.ts";
import type { RequestContext } from "../http/request-context.ts";
import { parseInstant } from "../lib/clock.ts";
import { concerns, mayConcern, subjectOf } from "./about-queries.ts";
import { actionsOf, type AuditAction, type AuditQuery, type AuditRow } from "./model.ts";
import { objectsOf } from "./object-queries.ts";
import { entryWords } from "./words.ts";

interface AuditEntry {
  readonly at: Date;
  readonly action: AuditAction;
  /** The acting user; null if the caller is not signed in or a command line tool acted. */
  readonly actor: AuditActor | null;
  readonly requestContext: Pick<RequestContext, "ip" | "userAgent" | "requestId"> | null;
  /**
   * Details of the audit action, as `AUDIT_ACTIONS` lists them. They must never contain a secret, a password, or an
   * email address that a person typed.
   */
  readonly details: Readonly<Record<string, unknown>>;
}

export type AuditActor = Pick<Principal, "userId" | "companyId" | "impersonatorId"> &
  Partial<Pick<Principal, "tokenKind" | "familyId" | "jti" | "clientId">>;

/**
 * Writes one row of the audit log. The caller must be in the transaction of the change that the row records, so that
 * either both are committed or neither.
 */
export async function recordAudit(
  tx: DbOrTx,
  { at, action, actor, requestContext, details }: AuditEntry,
): Promise<void> {
  await tx.insert(auditLog).values({
    at,
    action,
    actorId: actor?.userId ?? null,
    impersonatorId: actor?.impersonatorId ?? null,
    companyId: actor?.companyId ?? null,
    ip: requestContext?.ip ?? null,
    userAgent: requestContext?.userAgent ?? null,
    requestId: requestContext?.requestId ?? null,
    details: { ...details, ...tokenDetails(actor) },
  });
}

/** Returns the details that identify the acting token; empty if the actor has none, as in a sign-in. */
function tokenDetails(actor: AuditActor | null): Readonly<Record<string, unknown>> {
  if (actor?.jti === undefined) return {};
  const { jti, tokenKind: kind, clientId, familyId } = actor;
  return {
    token: { jti, kind, client_id: clientId ?? null },
    // A portal session acts for the user who created the link, but another person may be using the session. The session
    // id shows which rows come from the portal session.
    ...(kind === "portal" && { portal_session: familyId }),
  };
}

/**
 * Writes an audit row unless one with the same audit action, actor and details exists from the same hour of the clock.
 * Concurrent writers of such a row wait for each other's transactions, so that only one of them writes it.
 */
export async function recordAuditHourly(
  tx: DbOrTx,
  entry: AuditEntry & { readonly actor: AuditActor },
): Promise<void> {
  const { at, action, actor, details } = entry;
  const key = JSON.stringify([action, actor.userId, details]);
  await waitForLock(tx, "hourlyAudit", key);
  const since = sql`date_trunc('hour', ${sql.param(at, auditLog.at)}::timestamptz, 'UTC')`;
  const [written] = await tx
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(
      and(
        eq(auditLog.action, action),
        eq(auditLog.actorId, actor.userId),
        gte(auditLog.at, since),
        sql`${auditLog.details} @> ${sql.param(details, auditLog.details)}::jsonb`,
      ),
    )
    .limit(1);
  if (written === undefined) await recordAudit(tx, entry);
}

/** Lists the audit log of the whole platform for `GET /admin/audit-log`. */
export function listAudit(db: DbOrTx, query: AuditQuery, page: Page): Promise<Found<AuditRow>> {
  return search(query, page, async (part) =>
    withNames(db, await auditRows(db, newestPage(query, part))),
  );
}

/** Handles `GET /partner/audit-log`: lists the actions of the users of a partner and of its accounts. */
export function listAuditOfTenant(
  db: DbOrTx,
  partnerId: number,
  query: AuditQuery,
  page: Page,
): Promise<Found<AuditRow>> {
  return search(query, page, async (part) =>
    withNames(db, await auditRowsOfTenant(db, partnerId, newestPage(query, part)), partnerId),
  );
}

/**
 * Number of rows that one statement of a search reads, and maximum number that all statements of one search read.
 */
const READ_AT_ONCE = 1_000;
const SEARCHED_ROWS = 5_000;

/**
 * Reads a page. A search (`q` or `about`) reads up to `SEARCHED_ROWS` rows that match the other filters, and keeps
 * those that match. `read` returns one row more than the page if there is a next page.
 */
async function search(
  query: AuditQuery,
  page: Page,
  read: (page: Page) => Promise<NamedRow[]>,
): Promise<Found<AuditRow>> {
  const subject = subjectOf(query);
  const text = query.q?.toLowerCase();
  if (subject === undefined && text === undefined)
    return { rows: await read(page), end: undefined };
  const isWanted = (row: NamedRow) =>
    (subject === undefined || concerns(subject, row, row.objectOwnerIds)) &&
    (text === undefined || textOf(row).includes(text));
  const rows: NamedRow[] = [];
  let { after } = page;
  for (let from = 0; from < SEARCHED_ROWS && rows.length <= page.limit; from += READ_AT_ONCE) {
    const found = await read({ limit: READ_AT_ONCE, after });
    const part = found.slice(0, READ_AT_ONCE);
    rows.push(...part.filter(isWanted));
    after = part.at(-1)?.id.toString();
    if (found.length <= READ_AT_ONCE)
      return { rows: rows.slice(0, page.limit + 1), end: undefined };
  }
  return { rows: rows.slice(0, page.limit + 1), end: after };
}

/** Returns all text of a row that a search covers, in lower case. */
function textOf({ id: _id, at: _at, objectOwnerIds: _owners, details, ...row }: NamedRow): string {
  const { action, objectName: object_name } = row;
  const { actorId: actor_id, impersonatorId: impersonator_id, companyId: company_id } = row;
  const entry = { action, details, actor_id, impersonator_id, company_id };
  const words = [object_name, null].map((name) => entryWords({ ...entry, object_name: name }));
  return [...words, ...Object.values(row), JSON.stringify(details)].join("\n").toLowerCase();
}

/**
 * The rows of one step of an export: at most `limit` rows after the id `after`, up to the id `through`, in the order of
 * ids.
 */
interface ExportSlice {
  readonly after: string | undefined;
  readonly through: number;
  readonly limit: number;
}

/** Lists a slice of the audit log of the whole platform. */
export async function exportedAudit(db: DbOrTx, slice: ExportSlice): Promise<AuditRow[]> {
  const { limit } = slice;
  return withNames(db, await auditRows(db, { where: isInSlice(slice), order: asc, limit }));
}

/** Lists a slice of the audit log of a partner and its accounts. */
export async function exportedAuditOfTenant(
  db: DbOrTx,
  partnerId: number,
  slice: ExportSlice,
): Promise<AuditRow[]> {
  const { limit } = slice;
  const rows = auditRowsOfTenant(db, partnerId, { where: isInSlice(slice), order: asc, limit });
  return withNames(db, await rows, partnerId);
}

/** Describes a page of the rows that match the query, newest first. */
const newestPage = (query: AuditQuery, page: Page): WantedRows => ({
  where: conditionsOf(filterOf(query), page),
  order: desc,
  limit: page.limit + 1,
});

const isInSlice = ({ after, through }: ExportSlice) =>
  and(idAfter(auditLog.id, after), lte(auditLog.id, through));

function filterOf({ action, category, since, until, ...query }: AuditQuery) {
  const { actor_id: actorId, company_id: companyId } = query;
  return {
    subject: subjectOf(query),
    hasReads: query.reads !== "false",
    action,
    actions: category && actionsOf(category),
    actorId,
    companyId,
    since: since === undefined ? undefined : parseInstant(since),
    until: until === undefined ? undefined : parseInstant(until),
  };
}

async function withNames(
  db: DbOrTx,
  rows: readonly StoredRow[],
  tenantId?: number,
): Promise<NamedRow[]> {
  const people = rows.flatMap((row) => [row.actorId, row.impersonatorId]);
  const employers = rows.map((row) => row.companyId);
  const [userNames, companyNames, objects] = await Promise.all([
    namesOfUsers(db, people),
    namesOfCompanies(db, employers),
    objectsOf(db, rows, tenantId),
  ]);
  return rows.map((row, i) => ({
    ...row,
    objectName: objects[i]?.name ?? null,
    objectOwnerIds: objects[i]?.ownerIds ?? [],
    actorName: userNames.get(row.actorId) ?? null,
    impersonatorName: userNames.get(row.impersonatorId) ?? null,
    companyName: companyNames.get(row.companyId) ?? null,
  }));
}

type StoredRow = typeof auditLog.$inferSelect;
type NamedRow = AuditRow & { readonly objectOwnerIds: readonly unknown[] };

function conditionsOf(filter: ReturnType<typeof filterOf>, page: Page) {
  const { subject, hasReads, action, actions, actorId, companyId, since, until } = filter;
  return and(
    subject && mayConcern(subject),
    hasReads ? undefined : ne(auditLog.action, "TENANT_READ"),
    action === undefined ? undefined : eq(auditLog.action, action),
    actions && anyOf(auditLog.action, actions),
    actorId === undefined ? undefined : eq(auditLog.actorId, actorId),
    companyId === undefined ? undefined : eq(auditLog.companyId, companyId),
    since && gte(auditLog.at, since),
    until && lt(auditLog.at, until),
    idBefore(auditLog.id, page.after),
  );
}

interface WantedRows {
  readonly where: SQL | undefined;
  /** The order of the ids: `desc` puts the newest row first. */
  readonly order: typeof asc;
  readonly limit: number;
}

function auditRows(db: DbOrTx, { where, order, limit }: WantedRows): Promise<StoredRow[]> {
  return db.select().from(auditLog).where(where).orderBy(order(auditLog.id)).limit(limit);
}

/**
 * Lists the audit rows of a partner and its accounts. The query takes the first rows of each company from the index on
 * the company and merges them, so it reads no row of another tenant.
 */
async function auditRowsOfTenant(
  db: DbOrTx,
  partnerId: number,
  { where, order, limit }: WantedRows,
): Promise<StoredRow[]> {
  const own = db
    .select()
    .from(auditLog)
    .where(and(eq(auditLog.companyId, companies.id), where))
    .orderBy(order(auditLog.id))
    .limit(limit)
    .as("own");
  const found = await db
    .select()
    .from(companies)
    .crossJoinLateral(own)
    .where(or(eq(companies.id, partnerId), eq(companies.partnerId, partnerId)))
    .orderBy(order(own.id))
    .limit(limit);
  return found.map((row) => row.own);
}

type Ids = readonly (number | null)[];
type Names = Promise<ReadonlyMap<number | null, string>>;

const namesOfUsers = (db: DbOrTx, ids: Ids): Names => namesIn(db, users, ids);
const namesOfCompanies = (db: DbOrTx, ids: Ids): Names => namesIn(db, companies, ids);

async function namesIn(db: DbOrTx, table: typeof users | typeof companies, ids: Ids): Names {
  const known = new Set(ids.filter((one) => one !== null));
  if (known.size === 0) return new Map();
  const found = await db
    .select({ id: table.id, name: table.name })
    .from(table)
    .where(anyOf(table.id, known));
  return new Map(found.map((one) => [one.id, one.name]));
}

export type AuditWebhook = typeof auditWebhooks.$inferSelect;

/** The id of the only row of the table `audit_webhooks`. */
const PLATFORM = "platform";
const isPlatformRow = eq(auditWebhooks.id, PLATFORM);

export async function auditWebhookOf(db: DbOrTx): Promise<AuditWebhook | undefined> {
  const [row] = await db.select().from(auditWebhooks).where(isPlatformRow);
  return row;
}

/** Returns the audit webhook; undefined if there is none, or while it pauses after a failure. */
export async function dueAuditWebhook(db: DbOrTx, now: Date): Promise<AuditWebhook | undefined> {
  const [row] = await db
    .select()
    .from(auditWebhooks)
    .where(and(isPlatformRow, lte(auditWebhooks.nextAt, now)));
  return row;
}

interface WebhookSettings extends Pick<AuditWebhook, "url" | "sealedSecret"> {
  /**
   * The id after which a new audit webhook begins. An existing audit webhook is moved to this id only if `isMoved` is
   * set.
   */
  readonly afterId: number;
  readonly isMoved: boolean;
}

/**
 * Creates or replaces the settings of the audit webhook. The last failure is cleared, so the next POST is due
 * immediately.
 */
export async function putAuditWebhook(
  tx: Tx,
  { url, sealedSecret, afterId, isMoved }: WebhookSettings,
  now: Date,
): Promise<AuditWebhook> {
  const settled = { failures: 0, lastError: null, failedAt: null, nextAt: now, updatedAt: now };
  const given = { url, sealedSecret, ...settled };
  const moved = isMoved ? { afterId, lostRows: 0 } : {};
  const rows = await tx
    .insert(auditWebhooks)
    .values({ ...given, id: PLATFORM, version: 1, afterId, createdAt: now })
    .onConflictDoUpdate({
      target: auditWebhooks.id,
      set: { ...given, ...moved, version: sql`${auditWebhooks.version} + 1` },
    })
    .returning();
  return onlyRow(rows);
}

/** Makes the next POST of the audit webhook due, and returns its settings; undefined if there are none. */
export async function hurryAuditWebhook(tx: Tx, now: Date): Promise<AuditWebhook | undefined> {
  const [row] = await tx
    .update(auditWebhooks)
    .set({ nextAt: now })
    .where(isPlatformRow)
    .returning();
  return row;
}

/** Deletes the settings of the audit webhook and returns them; undefined if there are none. */
export async function deleteAuditWebhook(tx: Tx): Promise<AuditWebhook | undefined> {
  const [row] = await tx.delete(auditWebhooks).where(isPlatformRow).returning();
  return row;
}

/**
 * Stores the result of a POST of the audit webhook, unless its settings or `afterId` changed after `posted` was read.
 * A `nextAt` that has changed since then is kept, because a test is due at once. Returns whether the result was stored.
 */
export async function savePostResult(
  db: DbOrTx,
  posted: AuditWebhook,
  { nextAt: pausedUntil = posted.nextAt, ...change }: Partial<Omit<AuditWebhook, "id">>,
): Promise<boolean> {
  const { version, afterId, nextAt } = auditWebhooks;
  const isSame = eq(nextAt, posted.nextAt);
  const next = sql`case when ${isSame} then ${sql.param(pausedUntil, nextAt)} else ${nextAt} end`;
  const isUnchanged = and(isPlatformRow, eq(version, posted.version), eq(afterId, posted.afterId));
  const { count } = await db
    .update(auditWebhooks)
    .set({ ...change, nextAt: next })
    .where(isUnchanged);
  return count > 0;
}

/** Returns the time of the first row of the audit log after the id `afterId`; undefined if there is none. */
export async function firstAuditAfter(db: DbOrTx, afterId: number): Promise<Date | undefined> {
  const [row] = await db
    .select({ at: auditLog.at })
    .from(auditLog)
    .where(gt(auditLog.id, afterId))
    .orderBy(asc(auditLog.id))
    .limit(1);
  return row?.at;
}
