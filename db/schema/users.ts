import { boolean, integer, pgTable, text } from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";

export const users = pgTable("users", {
  id: id(),
  companyId: integer("company_id").notNull(),
  email: text("email").notNull(),
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
  passwordHash: text("password_hash"),
  isActive: boolean("is_active").notNull().default(true),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const userStores = pgTable("user_stores", {
  userId: integer("user_id").notNull(),
  storeId: integer("store_id").notNull(),
});
