import { boolean, integer, pgTable, text } from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";

export const plans = pgTable("plans", {
  id: id(),
  name: text("name").notNull(),
  features: text("features").array().notNull(),
});

export const companies = pgTable("companies", {
  id: id(),
  type: text("type", { enum: ["platform", "partner", "account"] }).notNull(),
  name: text("name").notNull(),
  partnerId: integer("partner_id"),
  planId: integer("plan_id"),
  isActive: boolean("is_active").notNull().default(true),
  primaryColor: text("primary_color").notNull(),
  logoUrl: text("logo_url"),
  whiteLabelEnabled: boolean("white_label_enabled").notNull().default(false),
  brandName: text("brand_name"),
  whiteLabelDomain: text("white_label_domain"),
  createdAt: instant("created_at").notNull(),
});

export const stores = pgTable("stores", {
  id: id(),
  accountId: integer("account_id").notNull(),
  partnerId: integer("partner_id").notNull(),
  name: text("name").notNull(),
});
