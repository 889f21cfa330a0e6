import type { DbOrTx } from "../../../db/client.ts";
import type { Principal } from "../../http/principal.ts";
import type { Page } from "../../http/list.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { parseInstant } from "../../lib/clock.ts";
import type { AuditAction, AuditQuery, AuditRow, StoredAuditRow } from "../audit-model.ts";
import * as queries from "../queries/audit.ts";

interface AuditEntry {
  readonly at: Date;
  readonly action: AuditAction;
  /** The acting user; null if nobody is signed in or a command line tool acted. */
  readonly actor: AuditActor | null;
  readonly requestContext: Pick<RequestContext, "ip" | "userAgent" | "requestId"> | null;
  /** Must never hold a secret, a password, or an email address that somebody typed. */
  readonly details: Readonly<Record<string, unknown>>;
}

export type AuditActor = Pick<Principal, "userId" | "companyId" | "impersonatorId"> &
  Partial<Pick<Principal, "tokenKind" | "familyId">>;

/**
 * Writes one row of the audit log. It must run in the transaction of the change that it records, so that both are
 * committed or neither.
 */
export async function recordAudit(
  tx: DbOrTx,
  { at, action, actor, requestContext, details }: AuditEntry,
): Promise<void> {
  await queries.insertAuditRow(tx, {
    at,
    action,
    actorId: actor?.userId ?? null,
    impersonatorId: actor?.impersonatorId ?? null,
    companyId: actor?.companyId ?? null,
    ip: requestContext?.ip ?? null,
    userAgent: requestContext?.userAgent ?? null,
    requestId: requestContext?.requestId ?? null,
    // A portal session acts in the name of the link's maker, but somebody else may be using it. The session id tells
    // the two apart.
    details:
      actor?.tokenKind === "portal" ? { ...details, portal_session: actor.familyId } : details,
  });
}

/** Handles `GET /admin/audit-log`. */
export async function listAudit(db: DbOrTx, query: AuditQuery, page: Page): Promise<AuditRow[]> {
  return withNames(db, await queries.auditRows(db, filterOf(query), page));
}

/** Handles `GET /partner/audit-log`: lists the actions of the users of a partner and of its accounts. */
export async function listAuditOfTenant(
  db: DbOrTx,
  partnerId: number,
  query: AuditQuery,
  page: Page,
): Promise<AuditRow[]> {
  return withNames(db, await queries.auditRowsOfTenant(db, partnerId, filterOf(query), page));
}

function filterOf({ action, actor_id: actorId, company_id: companyId, since, until }: AuditQuery) {
  return {
    action,
    actorId,
    companyId,
    since: since === undefined ? undefined : parseInstant(since),
    until: until === undefined ? undefined : parseInstant(until),
  };
}

async function withNames(db: DbOrTx, rows: readonly StoredAuditRow[]): Promise<AuditRow[]> {
  const people = rows.flatMap((row) => [row.actorId, row.impersonatorId]);
  const employers = rows.map((row) => row.companyId);
  const [userNames, companyNames] = await Promise.all([
    queries.namesOfUsers(db, people),
    queries.namesOfCompanies(db, employers),
  ]);
  return rows.map((row) => ({
    ...row,
    actorName: userNames.get(row.actorId) ?? null,
    impersonatorName: userNames.get(row.impersonatorId) ?? null,
    companyName: companyNames.get(row.companyId) ?? null,
  }));
}
