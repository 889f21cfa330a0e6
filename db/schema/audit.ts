import { index, jsonb, pgTable, text } from "drizzle-orm/pg-core";

import { bigid, instant } from "./columns.ts";
import { companyId } from "./companies.ts";
import { userId } from "./users.ts";

export const auditLog = pgTable(
  "audit_log",
  {
    id: bigid(),
    at: instant("at").notNull(),
    action: text("action").notNull(),
    actorId: userId("actor_id"),
    impersonatorId: userId("impersonator_id"),
    companyId: companyId("company_id"),
    ip: text("ip"),
    userAgent: text("user_agent"),
    requestId: text("request_id"),
    details: jsonb("details").$type<Readonly<Record<string, unknown>>>().notNull(),
  },
  (t) => [
    index("audit_log_action").on(t.action, t.id.desc().nullsFirst()),
    index("audit_log_actor").on(t.actorId, t.id.desc().nullsFirst()),
    index("audit_log_company").on(t.companyId, t.id.desc().nullsFirst()),
    index("audit_log_at").on(t.at),
  ],
);
