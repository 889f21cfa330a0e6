import type { Db } from "../../db/client.ts";
import { superAdmin } from "../auth/guard.ts";
import { listOf, listSchema, pageOf } from "../http/list.ts";
import { route } from "../http/route.ts";
import { listAudit } from "./actions.ts";
import { auditEntry, auditQuery, showAuditEntry } from "./model.ts";

/** decisions.md 2, audit log. */
export function auditRoutes(deps: { db: Db }) {
  return [
    route({
      method: "GET",
      path: "/admin/audit-log",
      summary: "List what was done, newest first",
      access: superAdmin(),
      query: auditQuery,
      answers: { 200: listSchema(auditEntry) },
      async handle({ query }) {
        const page = pageOf(query);
        const rows = await listAudit(deps, query, page);
        return listOf(rows, page, { key: (one) => String(one.id), show: showAuditEntry });
      },
    }),
  ];
}
