import { boolean, integer, pgTable, text } from "drizzle-orm/pg-core";

import { id } from "./columns.ts";

export const reviewSites = pgTable("review_sites", {
  id: id(),
  slug: text("slug").notNull(),
  name: text("name").notNull(),
  sealedSecret: text("sealed_secret").notNull(),
});

export const storeReviewSites = pgTable("store_review_sites", {
  id: id(),
  storeId: integer("store_id").notNull(),
  reviewSiteId: integer("review_site_id").notNull(),
  accountId: integer("account_id").notNull(),
  partnerId: integer("partner_id").notNull(),
  pullConnected: boolean("pull_connected").notNull(),
  pullErrorCode: text("pull_error_code"),
  postConnected: boolean("post_connected").notNull(),
  postErrorCode: text("post_error_code"),
});
