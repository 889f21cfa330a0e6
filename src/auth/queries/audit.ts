import { and, asc, desc, eq, gte, lt, lte, or, sql, type SQL } from "drizzle-orm";

import type { DbOrTx } from "../../../db/client.ts";
import { anyOf, idAfter, idBefore } from "../../../db/conditions.ts";
import { auditLog, companies, users } from "../../../db/schema/companies.ts";
import { waitForLock } from "../../../db/server.ts";
import type { Found, Page } from "../../http/list.ts";
import type { Principal } from "../../http/principal.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { parseInstant } from "../../lib/clock.ts";
import { entryWords } from "../audit-words.ts";
import { actionsOf, type AuditAction, type AuditQuery, type AuditRow } from "../audit-model.ts";

interface AuditEntry {
  readonly at: Date;
  readonly action: AuditAction;
  /** The acting user; null if the caller is not signed in or a command line tool acted. */
  readonly actor: AuditActor | null;
  readonly requestContext: Pick<RequestContext, "ip" | "userAgent" | "requestId"> | null;
  /** Details of the action. They must never contain a secret, a password, or an email address that a person typed. */
  readonly details: Readonly<Record<string, unknown>>;
}

export type AuditActor = Pick<Principal, "userId" | "companyId" | "impersonatorId"> &
  Partial<Pick<Principal, "tokenKind" | "familyId" | "jti" | "clientId">>;

/**
 * Writes one row of the audit log. The caller must be in the transaction of the change that the row records, so that
 * both are committed or neither.
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

/** Names the token that acted; empty if the actor is known without a token, as in a sign-in. */
function tokenDetails(actor: AuditActor | null): Readonly<Record<string, unknown>> {
  if (actor?.jti === undefined) return {};
  const { jti, tokenKind: kind, clientId, familyId } = actor;
  return {
    token: { jti, kind, client_id: clientId ?? null },
    // A portal session acts in the name of the user who made the link, but another person may be using the session.
    // The session id tells the two apart.
    ...(kind === "portal" && { portal_session: familyId }),
  };
}

/**
 * Writes a row unless one with the same action, actor and details exists from the same hour of the clock. Concurrent
 * writers of such a row take turns until their transactions end, so that only one of them writes it.
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
    withNames(db, await auditRows(db, newest(query, part))),
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
    withNames(db, await auditRowsOfTenant(db, partnerId, newest(query, part))),
  );
}

/** The number of rows that one statement of a text search reads, and the most that one call reads. */
const READ_AT_ONCE = 1_000;
const SEARCHED_ROWS = 5_000;

/**
 * Reads a page. With a text, reads the rows that match the other filters, up to `SEARCHED_ROWS`, and keeps those that
 * contain it. `read` returns one row more than the page if there is a next one.
 */
async function search(
  { q }: AuditQuery,
  page: Page,
  read: (page: Page) => Promise<AuditRow[]>,
): Promise<Found<AuditRow>> {
  if (q === undefined) return { rows: await read(page), end: undefined };
  const text = q.toLowerCase();
  const rows: AuditRow[] = [];
  let { after } = page;
  for (let from = 0; from < SEARCHED_ROWS && rows.length <= page.limit; from += READ_AT_ONCE) {
    const found = await read({ limit: READ_AT_ONCE, after });
    const part = found.slice(0, READ_AT_ONCE);
    rows.push(...part.filter((row) => textOf(row).includes(text)));
    after = part.at(-1)?.id.toString();
    if (found.length <= READ_AT_ONCE)
      return { rows: rows.slice(0, page.limit + 1), end: undefined };
  }
  return { rows: rows.slice(0, page.limit + 1), end: after };
}

/** Returns everything of a row that a text search finds, in lower case. */
function textOf({ id: _id, at: _at, details, ...row }: AuditRow): string {
  return [entryWords({ ...row, details }), ...Object.values(row), JSON.stringify(details)]
    .join("\n")
    .toLowerCase();
}

/** The rows of one step of an export: those after a row, up to `through`, in the order of their ids. */
interface Slice {
  readonly after: string | undefined;
  readonly through: number;
  readonly limit: number;
}

/** Lists a slice of the audit log of the whole platform. */
export async function exportedAudit(db: DbOrTx, slice: Slice): Promise<AuditRow[]> {
  const { limit } = slice;
  return withNames(db, await auditRows(db, { where: isInSlice(slice), order: asc, limit }));
}

/** Lists a slice of the audit log of a partner and its accounts. */
export async function exportedAuditOfTenant(
  db: DbOrTx,
  partnerId: number,
  slice: Slice,
): Promise<AuditRow[]> {
  const { limit } = slice;
  const rows = auditRowsOfTenant(db, partnerId, { where: isInSlice(slice), order: asc, limit });
  return withNames(db, await rows);
}

/** Returns a page of the rows that match the query, newest first. */
const newest = (query: AuditQuery, page: Page): Wanted => ({
  where: conditionsOf(filterOf(query), page),
  order: desc,
  limit: page.limit + 1,
});

const isInSlice = ({ after, through }: Slice) =>
  and(idAfter(auditLog.id, after), lte(auditLog.id, through));

function filterOf({ action, category, since, until, ...query }: AuditQuery) {
  const { actor_id: actorId, company_id: companyId } = query;
  return {
    action,
    actions: category && actionsOf(category),
    actorId,
    companyId,
    since: since === undefined ? undefined : parseInstant(since),
    until: until === undefined ? undefined : parseInstant(until),
  };
}

async function withNames(db: DbOrTx, rows: readonly StoredRow[]): Promise<AuditRow[]> {
  const people = rows.flatMap((row) => [row.actorId, row.impersonatorId]);
  const employers = rows.map((row) => row.companyId);
  const [userNames, companyNames] = await Promise.all([
    namesOfUsers(db, people),
    namesOfCompanies(db, employers),
  ]);
  return rows.map((row) => ({
    ...row,
    actorName: userNames.get(row.actorId) ?? null,
    impersonatorName: userNames.get(row.impersonatorId) ?? null,
    companyName: companyNames.get(row.companyId) ?? null,
  }));
}

type StoredRow = typeof auditLog.$inferSelect;

interface AuditFilter {
  readonly action: string | undefined;
  readonly actions: readonly string[] | undefined;
  readonly actorId: number | undefined;
  readonly companyId: number | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

function conditionsOf(filter: AuditFilter, page: Page) {
  const { action, actions, actorId, companyId, since, until } = filter;
  return and(
    action === undefined ? undefined : eq(auditLog.action, action),
    actions && anyOf(auditLog.action, actions),
    actorId === undefined ? undefined : eq(auditLog.actorId, actorId),
    companyId === undefined ? undefined : eq(auditLog.companyId, companyId),
    since && gte(auditLog.at, since),
    until && lt(auditLog.at, until),
    idBefore(auditLog.id, page.after),
  );
}

interface Wanted {
  readonly where: SQL | undefined;
  /** The order of the ids: `desc` has the row that was written last first. */
  readonly order: typeof asc;
  readonly limit: number;
}

function auditRows(db: DbOrTx, { where, order, limit }: Wanted): Promise<StoredRow[]> {
  return db.select().from(auditLog).where(where).orderBy(order(auditLog.id)).limit(limit);
}

/**
 * Lists the audit rows of a partner and its accounts. The query takes the first rows of each company from the index on
 * the company and merges them, so it reads no row of another tenant.
 */
async function auditRowsOfTenant(
  db: DbOrTx,
  partnerId: number,
  { where, order, limit }: Wanted,
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
