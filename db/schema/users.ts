import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";
import { companies, stores } from "./companies.ts";

export const users = pgTable(
  "users",
  {
    id: id(),
    companyId: integer("company_id")
      .notNull()
      .references(() => companies.id),
    email: text("email").notNull().unique("users_email_key"),
    name: text("name").notNull(),
    role: text("role", {
      enum: [
        "super_admin",
        "partner_owner",
        "partner_admin",
        "account_owner",
        "account_user",
        "location_user",
      ],
    }).notNull(),
    /** Null for users who sign in only through an identity provider. */
    passwordHash: text("password_hash"),
    isActive: boolean("is_active").notNull().default(true),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
  },
  (t) => [
    index("users_company").on(t.companyId, t.id),
    check("users_email_check", sql`email = lower(btrim(email))`),
  ],
);

/** The stores of a location user. */
export const userStores = pgTable(
  "user_stores",
  {
    userId: integer("user_id")
      .notNull()
      .references(() => users.id),
    storeId: integer("store_id")
      .notNull()
      .references(() => stores.id),
  },
  (t) => [primaryKey({ columns: [t.userId, t.storeId] })],
);
