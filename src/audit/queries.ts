import { and, desc, eq, getTableColumns, gte, lt } from "drizzle-orm";

import type { DbOrTx } from "../../db/client.ts";
import { idBefore } from "../../db/conditions.ts";
import { prepared } from "../../db/prepared.ts";
import { auditLog } from "../../db/schema/audit.ts";
import type { Page } from "../http/list.ts";
import type { StoredAuditRow } from "./model.ts";

const { id, ...columns } = getTableColumns(auditLog);
const insertion = prepared(columns, (db, given) => db.insert(auditLog).values(given));

export async function insertAuditRow(
  tx: DbOrTx,
  row: Omit<typeof auditLog.$inferSelect, "id">,
): Promise<void> {
  await insertion(tx, row);
}

interface AuditFilter {
  readonly action: string | undefined;
  readonly actorId: number | undefined;
  readonly companyId: number | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

/** Newest first by id, which is the order of writing. */
export function auditRows(
  db: DbOrTx,
  { action, actorId, companyId, since, until }: AuditFilter,
  page: Page,
): Promise<StoredAuditRow[]> {
  const conditions = [
    action === undefined ? undefined : eq(auditLog.action, action),
    actorId === undefined ? undefined : eq(auditLog.actorId, actorId),
    companyId === undefined ? undefined : eq(auditLog.companyId, companyId),
    since && gte(auditLog.at, since),
    until && lt(auditLog.at, until),
    idBefore(id, page.after),
  ];
  return db
    .select()
    .from(auditLog)
    .where(and(...conditions))
    .orderBy(desc(id))
    .limit(page.limit + 1);
}
