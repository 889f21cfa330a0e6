import { Elysia } from "elysia";

import type { Db } from "../../db/client.ts";
import { superAdmin } from "../auth/guard.ts";
import { BASE_PATH } from "../http/base-path.ts";
import type { Checks } from "../http/checks.ts";
import { listOf, listSchema, pageOf } from "../http/list.ts";
import { listAudit } from "./actions.ts";
import { auditEntry, auditQuery, showAuditEntry } from "./model.ts";

/** decisions.md 2, audit log. */
export function auditRoutes({ db, checks }: { readonly db: Db; readonly checks: Checks }) {
  return new Elysia({ prefix: `${BASE_PATH}/admin`, tags: ["Administration"] }).use(checks).get(
    "/audit-log",
    async ({ query }) => {
      const page = pageOf(query);
      const rows = await listAudit(db, query, page);
      return listOf(rows, page, { key: (one) => String(one.id), show: showAuditEntry });
    },
    {
      access: superAdmin(),
      query: auditQuery,
      response: { 200: listSchema(auditEntry) },
      detail: { summary: "List what was done, newest first" },
    },
  );
}
