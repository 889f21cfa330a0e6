import { sql } from "drizzle-orm";
import {
  type AnyPgColumn,
  boolean,
  index,
  integer,
  pgTable,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";

export const plans = pgTable("plans", {
  id: id(),
  name: text("name").notNull().unique("plans_name_key"),
  features: text("features").array().notNull(),
});

export const companies = pgTable(
  "companies",
  {
    id: id(),
    type: text("type", { enum: ["platform", "partner", "account"] }).notNull(),
    name: text("name").notNull(),
    partnerId: integer("partner_id").references((): AnyPgColumn => companies.id),
    planId: integer("plan_id").references(() => plans.id),
    isActive: boolean("is_active").notNull().default(true),
    primaryColor: text("primary_color").notNull(),
    logoUrl: text("logo_url"),
    whiteLabelEnabled: boolean("white_label_enabled").notNull().default(false),
    brandName: text("brand_name"),
    whiteLabelDomain: text("white_label_domain").unique("companies_white_label_domain_key"),
    createdAt: instant("created_at").notNull(),
  },
  (t) => [
    index("companies_partner")
      .on(t.partnerId, t.id)
      .where(sql`partner_id is not null`),
    index("companies_type").on(t.type, t.id),
    uniqueIndex("companies_one_platform")
      .on(t.type)
      .where(sql`type = 'platform'`),
  ],
);

/** A column that names a company. */
export const companyId = (name: string) => integer(name).references(() => companies.id);

export const stores = pgTable(
  "stores",
  {
    id: id(),
    accountId: companyId("account_id").notNull(),
    partnerId: companyId("partner_id").notNull(),
    name: text("name").notNull(),
  },
  (t) => [index("stores_account").on(t.accountId, t.id)],
);
