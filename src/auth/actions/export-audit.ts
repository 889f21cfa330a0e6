import type { Db } from "../../../db/client.ts";
import { decodeCursor, encodeCursor } from "../../http/list.ts";
import type { Caller } from "../../http/principal.ts";
import { shown } from "../../http/shown.ts";
import type { Clock } from "../../lib/clock.ts";
import { SettledIds } from "../../outbox/settled-ids.ts";
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

/** Exports the audit log as NDJSON in the order of its ids, without skipping a row that commits late (contract 3.11). */
export class AuditExporter {
  readonly #deps: ExportDeps;
  readonly #settled: SettledIds;

  constructor(deps: ExportDeps) {
    this.#deps = deps;
    this.#settled = new SettledIds(deps, "audit_log");
  }

  /**
   * Returns the rows of the partner and its accounts, or of the whole platform for null, and audits the export. Throws
   * `unavailable` as `SettledIds` does.
   */
  async export(caller: Caller, query: AuditExportQuery, partnerId: number | null) {
    await this.#record(caller);
    const through = await this.#settled.through();
    let after = query.after === undefined ? undefined : decodeCursor(query.after);
    let lines = "";
    for (let left = query.limit ?? EXPORTED_ROWS; left > 0;) {
      const limit = Math.min(left, STEP_ROWS);
      const rows = await this.#rows(partnerId, { after, through, limit });
      for (const row of rows) {
        after = String(row.id);
        lines += `${JSON.stringify({ ...shown(auditEntry, row), cursor: encodeCursor(after) })}\n`;
      }
      left = rows.length < limit ? 0 : left - limit;
    }
    return new Response(lines, { headers: { "Content-Type": "application/x-ndjson" } });
  }

  #rows(partnerId: number | null, slice: Parameters<typeof exportedAudit>[1]) {
    const { db } = this.#deps;
    return partnerId === null
      ? exportedAudit(db, slice)
      : exportedAuditOfTenant(db, partnerId, slice);
  }

  async #record({ principal: actor, requestContext }: Caller): Promise<void> {
    const { db, clock } = this.#deps;
    const at = clock.now();
    const entry = { at, action: "AUDIT_EXPORTED", actor, requestContext, details: {} } as const;
    await db.transaction((tx) => recordAuditHourly(tx, entry));
  }
}
