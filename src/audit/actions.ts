import type { DbOrTx } from "../../db/client.ts";
import type { Principal } from "../http/principal.ts";
import type { Page } from "../http/list.ts";
import type { Call } from "../http/call.ts";
import { parseInstant } from "../lib/clock.ts";
import type { AuditAction, AuditQuery, StoredAuditRow } from "./model.ts";
import { auditRows, insertAuditRow } from "./queries.ts";

interface AuditEntry {
  readonly at: Date;
  readonly action: AuditAction;
  /** The user who acted; null where nobody is signed in, or a command line acted. */
  readonly actor: AuditActor | null;
  readonly call: Pick<Call, "ip" | "userAgent" | "requestId"> | null;
  /** Must never hold a secret, a password, or an address that somebody typed. */
  readonly details: Readonly<Record<string, unknown>>;
}

export type AuditActor = Pick<Principal, "userId" | "companyId" | "impersonatorId">;

/** Writes one row of the audit log, in the transaction of the change that it records. */
export async function recordAudit(
  tx: DbOrTx,
  { at, action, actor, call, details }: AuditEntry,
): Promise<void> {
  await insertAuditRow(tx, {
    at,
    action,
    actorId: actor?.userId ?? null,
    impersonatorId: actor?.impersonatorId ?? null,
    companyId: actor?.companyId ?? null,
    ip: call?.ip ?? null,
    userAgent: call?.userAgent ?? null,
    requestId: call?.requestId ?? null,
    details,
  });
}

/** `GET /admin/audit-log`. */
export function listAudit(db: DbOrTx, query: AuditQuery, page: Page): Promise<StoredAuditRow[]> {
  const { action, actor_id: actorId, company_id: companyId } = query;
  const since = query.since === undefined ? undefined : parseInstant(query.since);
  const until = query.until === undefined ? undefined : parseInstant(query.until);
  return auditRows(db, { action, actorId, companyId, since, until }, page);
}
