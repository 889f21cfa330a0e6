import { Elysia } from "elysia";

import { listAudit } from "../auth/queries/audit.ts";
import { AuditExporter } from "../auth/actions/export-audit.ts";
import { auditEntry, AuditExport, auditExportQuery, auditQuery } from "../auth/audit-model.ts";
import { errorResponse } from "../http/errors.ts";
import { listOf, listSchema, pageOf } from "../http/list.ts";
import { shownAs } from "../http/shown.ts";
import { administrating, type AdminRouteDeps, adminRoutesBase } from "./routes/base.ts";
import { accountRoutes, companyRoutes, partnerRoutes } from "./routes/companies.ts";
import { type DispatcherRouteDeps, dispatcherRoutes } from "./routes/dispatcher.ts";
import { deletionRoutes, erasureRoutes } from "./routes/erasures.ts";
import { masterDataRoutes } from "./routes/kinds.ts";
import { providerAdminRoutes, storeRoutes } from "./routes/stores.ts";
import { userRoutes } from "./routes/users.ts";

/**
 * Defines the routes for the administration of the platform by super-admins (contract 10). The routes of identity
 * providers are in src/sso.
 */
export function adminRoutes(deps: DispatcherRouteDeps) {
  return new Elysia({ name: "admin" })
    .use(partnerRoutes(deps))
    .use(accountRoutes(deps))
    .use(companyRoutes(deps))
    .use(storeRoutes(deps))
    .use(userRoutes(deps))
    .use(providerAdminRoutes(deps))
    .use(masterDataRoutes(deps))
    .use(erasureRoutes(deps))
    .use(deletionRoutes(deps, "partner"))
    .use(deletionRoutes(deps, "account"))
    .use(dispatcherRoutes(deps))
    .use(auditRoutes(deps));
}

/** Defines the routes for the audit log of the whole platform (contract 3.8 and 3.11). */
function auditRoutes(deps: AdminRouteDeps) {
  const exporter = new AuditExporter(deps);
  return adminRoutesBase(deps, "")
    .get(
      "/audit-log",
      async ({ query }) => {
        const page = pageOf(query);
        const rows = await listAudit(deps.db, query, page);
        return listOf(rows, page, { key: (one) => String(one.id), show: shownAs(auditEntry) });
      },
      {
        access: administrating,
        looksInto: "audit-log",
        query: auditQuery,
        response: { 200: listSchema(auditEntry) },
        detail: {
          operationId: "listAuditLog",
          summary: "List the audit log, newest first",
          description:
            "Sign-ins, denied requests, tokens, secrets and changes of clients and keys.",
        },
      },
    )
    .get(
      "/audit-log/export",
      async ({ principal, requestContext, query }) =>
        exporter.export({ principal, requestContext }, query, null),
      {
        access: administrating,
        query: auditExportQuery,
        response: { 200: AuditExport, 503: errorResponse("unavailable") },
        detail: {
          operationId: "exportAuditLog",
          summary: "Export the audit log as NDJSON, oldest first",
          description:
            "In the order of `id`. A row never appears before one that was exported, so a caller that keeps the last `cursor` and later continues `after` it misses no row.",
        },
      },
    );
}
