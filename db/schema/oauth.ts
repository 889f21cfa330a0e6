import { sql } from "drizzle-orm";
import { boolean, index, pgTable, text, uuid, type AnyPgColumn } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";
import { companyId } from "./companies.ts";

export const oauthClients = pgTable(
  "oauth_clients",
  {
    clientId: uuid("client_id").primaryKey(),
    /** Null: a client of the platform itself. */
    companyId: companyId("company_id"),
    name: text("name").notNull(),
    secretHash: text("secret_hash"),
    confidential: boolean("confidential").notNull(),
    firstParty: boolean("first_party").notNull(),
    redirectUris: text("redirect_uris").array().notNull(),
    scopes: text("scopes").array().notNull(),
    grantTypes: text("grant_types").array().notNull(),
    /** The third-party client by whose token it was made: tokens of that one may touch it, those of others not. */
    createdBy: uuid("created_by").references((): AnyPgColumn => oauthClients.clientId, {
      onDelete: "set null",
    }),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
  },
  (t) => [
    index("oauth_clients_company").on(t.companyId, t.createdAt),
    index("oauth_clients_created_by")
      .on(t.createdBy)
      .where(sql`created_by is not null`),
  ],
);
