import type { DbOrTx } from "../../db/client.ts";

interface AuditRow {
  readonly at: Date;
  readonly action: string;
  readonly actorId: number | null;
  readonly impersonatorId: number | null;
  readonly companyId: number | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

export async function insertAuditRow(tx: DbOrTx, row: AuditRow): Promise<void> {
  await tx.sql`
    insert into audit_log
      (at, action, actor_id, impersonator_id, company_id, ip, user_agent, request_id, details)
    values
      (${row.at}, ${row.action}, ${row.actorId}, ${row.impersonatorId}, ${row.companyId},
       ${row.ip}, ${row.userAgent}, ${row.requestId}, ${JSON.stringify(row.details)}::text::jsonb)`;
}
