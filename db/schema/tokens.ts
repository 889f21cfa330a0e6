import { integer, pgTable, text, uuid } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

export const authenticationEvents = pgTable("authentication_events", {
  id: text("id").primaryKey(),
  userId: integer("user_id").notNull(),
  method: text("method", {
    enum: [
      "login",
      "password_grant",
      "authorization_code",
      "sso",
      "password_reset",
      "impersonation",
    ],
  }).notNull(),
  clientId: uuid("client_id"),
  ip: text("ip"),
  userAgent: text("user_agent"),
  at: instant("at").notNull(),
  logoutTime: instant("logout_time"),
});

export const tokens = pgTable("tokens", {
  jti: text("jti").primaryKey(),
  kind: text("kind", {
    enum: ["access", "refresh", "dashboard_pat", "api_pat", "impersonation", "password_reset"],
  }).notNull(),
  userId: integer("user_id").notNull(),
  clientId: uuid("client_id"),
  familyId: text("family_id"),
  impersonatorId: integer("impersonator_id"),
  scope: text("scope").notNull(),
  kid: text("kid").notNull(),
  name: text("name"),
  sealedToken: text("sealed_token"),
  issuedAt: instant("issued_at").notNull(),
  expiresAt: instant("expires_at"),
  lastUsedAt: instant("last_used_at"),
  redeemedAt: instant("redeemed_at"),
});
