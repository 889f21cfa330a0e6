import type { Db } from "../../../db/client.ts";
import { decodeCursor, encodeCursor } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { shown } from "../../http/shown.ts";
import type { Clock } from "../../lib/clock.ts";
import { settledThrough } from "../../outbox/settled-ids.ts";
import { auditEntry, type AuditExportQuery, EXPORTED_ROWS } from "../audit-model.ts";
import { exportedAudit, exportedAuditOfTenant, recordAuditHourly } from "../queries/audit.ts";

/**
 * The most rows of one statement. The statement of a partner reads as many rows of each of its accounts, so the number
 * is that of the longest page of a list.
 */
const STEP_ROWS = 100;

interface ExportDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Reads a slice of the audit log of the partner and its accounts, or of the whole platform for null: one text of JSON for
 * each row. `last` is the id of the last row; undefined if there is none.
 */
export async function auditLines(
  db: Db,
  partnerId: number | null,
  { after, through, limit }: Parameters<typeof exportedAudit>[1],
): Promise<{ lines: string[]; last: string | undefined }> {
  let last: string | undefined;
  const lines: string[] = [];
  for (let left = limit; left > 0;) {
    const slice = { after: last ?? after, through, limit: Math.min(left, STEP_ROWS) };
    const rows = await (partnerId === null
      ? exportedAudit(db, slice)
      : exportedAuditOfTenant(db, partnerId, slice));
    for (const row of rows) {
      last = String(row.id);
      lines.push(JSON.stringify({ ...shown(auditEntry, row), cursor: encodeCursor(last) }));
    }
    left = rows.length < slice.limit ? 0 : left - slice.limit;
  }
  return { lines, last };
}

/**
 * Exports the audit log as NDJSON in the order of its ids, without skipping a row that commits late (contract 3.11).
 * Returns the rows of the partner and its accounts, or of the whole platform for null, and audits the export. Throws
 * `unavailable` as `settledThrough` does.
 */
export async function exportAudit(
  deps: ExportDeps,
  { principal: actor, requestContext }: Caller,
  query: AuditExportQuery,
  partnerId: number | null,
) {
  const { db, clock } = deps;
  const at = clock.now();
  const entry = { at, action: "AUDIT_EXPORTED", actor, requestContext, details: {} } as const;
  await db.transaction((tx) => recordAuditHourly(tx, entry));
  const through = await settledThrough(deps, "audit_log");
  const after = query.after === undefined ? undefined : decodeCursor(query.after);
  const slice = { after, through, limit: query.limit ?? EXPORTED_ROWS };
  const { lines } = await auditLines(db, partnerId, slice);
  const body = lines.map((line) => `${line}\n`).join("");
  return new Response(body, { headers: { "Content-Type": "application/x-ndjson" } });
}
