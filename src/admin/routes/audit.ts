import { listAudit } from "../../audit/actions.ts";
import { auditEntry, auditQuery, showAuditEntry } from "../../audit/model.ts";
import { listOf, listSchema, pageOf } from "../../http/list.ts";
import { administrating, adminRoutesBase, type AdminRouteDeps } from "./base.ts";

/** See contract 3.8. */
export function auditRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "").get(
    "/audit-log",
    async ({ query }) => {
      const page = pageOf(query);
      const rows = await listAudit(deps.db, query, page);
      return listOf(rows, page, { key: (one) => String(one.id), show: showAuditEntry });
    },
    {
      access: administrating,
      query: auditQuery,
      response: { 200: listSchema(auditEntry) },
      detail: {
        operationId: "listAuditLog",
        summary: "List what was done, newest first",
        description: "Sign-ins, refusals, tokens, secrets and changes of clients and keys.",
      },
    },
  );
}
