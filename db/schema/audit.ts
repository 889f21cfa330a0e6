import { integer, jsonb, pgTable, text } from "drizzle-orm/pg-core";

import { bigid, instant } from "./columns.ts";

export const auditLog = pgTable("audit_log", {
  id: bigid(),
  at: instant("at").notNull(),
  action: text("action").notNull(),
  actorId: integer("actor_id"),
  impersonatorId: integer("impersonator_id"),
  companyId: integer("company_id"),
  ip: text("ip"),
  userAgent: text("user_agent"),
  requestId: text("request_id"),
  details: jsonb("details").notNull(),
});
