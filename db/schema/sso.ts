import { boolean, integer, pgTable, text } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

export const ssoConnections = pgTable("sso_connections", {
  id: text("id").primaryKey(),
  companyId: integer("company_id").notNull(),
  issuer: text("issuer").notNull(),
  clientId: text("client_id").notNull(),
  sealedClientSecret: text("sealed_client_secret").notNull(),
  passwordLogin: boolean("password_login").notNull(),
  isActive: boolean("is_active").notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const ssoDomains = pgTable("sso_domains", {
  domain: text("domain").primaryKey(),
  connectionId: text("connection_id").notNull(),
});
