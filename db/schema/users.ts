import { boolean, index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";
import { companyId, stores } from "./companies.ts";

export const users = pgTable(
  "users",
  {
    id: id(),
    companyId: companyId("company_id").notNull(),
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
  (t) => [index("users_company").on(t.companyId, t.id)],
);

/** A column that names a user. */
export const userId = (name: string) => integer(name).references(() => users.id);

/** The stores of a location user. */
export const userStores = pgTable(
  "user_stores",
  {
    userId: userId("user_id").notNull(),
    storeId: integer("store_id")
      .notNull()
      .references(() => stores.id),
  },
  (t) => [primaryKey({ columns: [t.userId, t.storeId] })],
);
