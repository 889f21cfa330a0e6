import type { Db } from "../../db/client.ts";
import { decodeCursor, encodeCursor } from "../http/list.ts";
import type { Caller } from "../http/principal.ts";
import { shown } from "../http/shown.ts";
import type { Clock } from "../lib/clock.ts";
import { settledThrough } from "../outbox/settled-ids.ts";
import { auditEntry, type AuditExportQuery, EXPORTED_ROWS } from "./model.ts";
import { exportedAudit, exportedAuditOfTenant, recordAuditHourly } from "./queries.ts";

/**
 * Maximum number of rows that one statement returns. The statement for a partner reads up to this number of rows for
 * each of the partner's accounts, so the number is no larger than the longest page of a list.
 */
const STEP_ROWS = 100;

interface ExportDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Reads a slice of the audit log of a partner and its accounts, or of the whole platform if `partnerId` is null.
 * Returns one JSON text per row. `last` is the id of the last row; undefined if there is none.
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
 * Exports the audit log as NDJSON in the order of ids, without missing a row that commits late (contract 3.11). Returns
 * the rows of the partner and its accounts, or of the whole platform if the partner is null, and audits the export.
 * Throws `unavailable` like `settledThrough`.
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
