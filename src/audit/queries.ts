import type { DbOrTx } from "../../db/client.ts";
import type { Page } from "../http/list.ts";
import type { StoredAuditRow } from "./model.ts";

export interface AuditFilter {
  readonly action: string | undefined;
  readonly actorId: number | undefined;
  readonly companyId: number | undefined;
  readonly since: Date | undefined;
  readonly until: Date | undefined;
}

export async function insertAuditRow(
  tx: DbOrTx,
  row: Omit<StoredAuditRow, "id" | "details"> & { details: Readonly<Record<string, unknown>> },
): Promise<void> {
  await tx.sql`
    insert into audit_log
      (at, action, actor_id, impersonator_id, company_id, ip, user_agent, request_id, details)
    values
      (${row.at}, ${row.action}, ${row.actorId}, ${row.impersonatorId}, ${row.companyId},
       ${row.ip}, ${row.userAgent}, ${row.requestId}, ${JSON.stringify(row.details)}::text::jsonb)`;
}

/** Newest first by id, which is the order of writing. */
export async function auditRows(
  db: DbOrTx,
  filter: AuditFilter,
  page: Page,
): Promise<StoredAuditRow[]> {
  const { sql } = db;
  const conditions = [
    filter.action === undefined ? sql`` : sql`and action = ${filter.action}`,
    filter.actorId === undefined ? sql`` : sql`and actor_id = ${filter.actorId}`,
    filter.companyId === undefined ? sql`` : sql`and company_id = ${filter.companyId}`,
    filter.since === undefined ? sql`` : sql`and at >= ${filter.since}`,
    filter.until === undefined ? sql`` : sql`and at < ${filter.until}`,
    page.after === undefined ? sql`` : sql`and id < ${Number(page.after)}::bigint`,
  ];
  return sql<StoredAuditRow[]>`
    select id, at, action, actor_id as "actorId", impersonator_id as "impersonatorId", company_id as "companyId",
      ip, user_agent as "userAgent", request_id as "requestId", details
    from audit_log where true ${conditions}
    order by id desc limit ${page.limit + 1}`;
}
