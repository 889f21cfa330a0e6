import { boolean, integer, pgTable, text, uuid } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

export const oauthClients = pgTable("oauth_clients", {
  clientId: uuid("client_id").primaryKey(),
  companyId: integer("company_id"),
  name: text("name").notNull(),
  secretHash: text("secret_hash"),
  confidential: boolean("confidential").notNull(),
  firstParty: boolean("first_party").notNull(),
  redirectUris: text("redirect_uris").array().notNull(),
  scopes: text("scopes").array().notNull(),
  grantTypes: text("grant_types").array().notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});
