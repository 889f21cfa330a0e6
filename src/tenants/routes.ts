import { join } from "../http/join.ts";
import { Type } from "@sinclair/typebox";

import { listAudit } from "../audit/queries.ts";
import { exportAudit } from "../audit/export.ts";
import { auditEntry, AuditExport, auditExportQuery, auditQuery } from "../audit/model.ts";
import { AuditWebhookBody, AuditWebhookObject, AuditWebhookWithSecret } from "../audit/webhook.ts";
import {
  auditWebhookErrors,
  putAuditWebhook,
  removeAuditWebhook,
  showAuditWebhook,
  testAuditWebhook,
} from "../audit/webhook.ts";
import { errorResponse } from "../http/errors.ts";
import { NO_FIELDS } from "../http/fields.ts";
import { searchPageAnswer, listSchema, pageOf } from "../http/list.ts";
import type { RuleInput } from "../http/rules.ts";
import { shown, shownAs } from "../http/shown.ts";
import { administrating, type AdminRouteDeps, adminRoutesBase, changing } from "./routes/base.ts";
import { accountRoutes, companyRoutes, partnerRoutes } from "./routes/companies.ts";
import { type DispatcherRouteDeps, dispatcherRoutes } from "./routes/dispatcher.ts";
import { deletionListRoutes, deletionRoutes, erasureRoutes } from "./routes/erasures.ts";
import { masterDataRoutes } from "./routes/kinds.ts";
import { searchRoutes } from "./routes/search.ts";
import { providerAdminRoutes, storeRoutes } from "./routes/stores.ts";
import { type UserRouteDeps, userRoutes } from "./routes/users.ts";

/**
 * Defines the routes for the administration of the platform by super-admins (contract 10). The routes that manage SSO
 * connections are in src/sso.
 */
export function adminRoutes(deps: DispatcherRouteDeps & UserRouteDeps) {
  return join(
    partnerRoutes(deps),
    accountRoutes(deps),
    companyRoutes(deps),
    storeRoutes(deps),
    userRoutes(deps),
    providerAdminRoutes(deps),
    masterDataRoutes(deps),
    erasureRoutes(deps),
    deletionRoutes(deps, "partner"),
    deletionRoutes(deps, "account"),
    deletionListRoutes(deps),
    searchRoutes(deps),
    dispatcherRoutes(deps),
    auditRoutes(deps),
    auditWebhookRoutes(deps),
  );
}

/** Defines the routes for the audit log of the whole platform (contract 3.8 and 3.11). */
function auditRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "")
    .get(
      "/audit-log",
      async ({ query }) => {
        const page = pageOf(query);
        const found = await listAudit(deps.db, query, page);
        return searchPageAnswer(found, page, {
          key: (one) => String(one.id),
          show: shownAs(auditEntry),
        });
      },
      {
        access: administrating,
        auditedRead: "audit-log",
        query: auditQuery,
        response: { 200: listSchema(auditEntry) },
        detail: {
          operationId: "listAuditLog",
          summary: "List the audit log, newest first",
          description: "`about` finds what a user or company did and what was done to it.",
        },
      },
    )
    .get(
      "/audit-log/export",
      async ({ principal, requestContext, query }) =>
        exportAudit(deps, { principal, requestContext }, query, null),
      {
        access: administrating,
        query: auditExportQuery,
        response: { 200: AuditExport, 503: errorResponse("unavailable") },
        detail: {
          operationId: "exportAuditLog",
          summary: "Export the audit log as NDJSON, oldest first",
          description: "Continue with `after` to get every row once.",
        },
      },
    );
}

/** Defines the routes for the webhook that gets the audit log of the whole platform (contract 3.12). */
function auditWebhookRoutes(deps: AdminRouteDeps) {
  return adminRoutesBase(deps, "/audit-webhook")
    .get("", async () => shown(AuditWebhookObject, await showAuditWebhook(deps)), {
      access: administrating,
      response: { 200: AuditWebhookObject, 404: errorResponse("not_found") },
      detail: {
        operationId: "getAuditWebhook",
        summary: "Show the audit webhook and its progress",
        description: "The secret is not shown.",
      },
    })
    .put(
      "",
      async ({ principal, requestContext, body }) =>
        shown(
          AuditWebhookWithSecret,
          await putAuditWebhook(deps, { principal, requestContext }, body),
        ),
      {
        access: changing,
        body: AuditWebhookBody,
        rules: ({ body }: RuleInput<typeof AuditWebhookBody>) =>
          auditWebhookErrors(deps.config, body),
        response: { 200: AuditWebhookWithSecret, 503: errorResponse("unavailable") },
        detail: {
          operationId: "setAuditWebhook",
          summary: "Set the audit webhook; its new secret is shown once",
          description:
            "Sends the rows of the audit log to a URL, in order and at least once, signed as in Standard Webhooks. Each request creates a new secret.",
        },
      },
    )
    .post(
      "/test",
      async ({ principal, requestContext, status }) => {
        await testAuditWebhook(deps, { principal, requestContext });
        return status(204, undefined);
      },
      {
        access: changing,
        body: NO_FIELDS,
        response: { 204: Type.Void(), 404: errorResponse("not_found") },
        detail: {
          operationId: "testAuditWebhook",
          summary: "Send a test to the audit webhook",
          description: "A row of the audit log, sent at once.",
        },
      },
    )
    .delete(
      "",
      async ({ principal, requestContext, status }) => {
        await removeAuditWebhook(deps, { principal, requestContext });
        return status(204, undefined);
      },
      {
        access: changing,
        response: { 204: Type.Void(), 404: errorResponse("not_found") },
        detail: {
          operationId: "deleteAuditWebhook",
          summary: "Delete the audit webhook",
          description: "A new audit webhook starts with the next row.",
        },
      },
    );
}
