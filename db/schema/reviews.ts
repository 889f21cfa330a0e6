import { integer, pgTable, text } from "drizzle-orm/pg-core";

import { id, instant } from "./columns.ts";

export const reviews = pgTable("reviews", {
  id: id(),
  partnerId: integer("partner_id").notNull(),
  accountId: integer("account_id").notNull(),
  storeId: integer("store_id").notNull(),
  storeReviewSiteId: integer("store_review_site_id").notNull(),
  externalReviewId: text("external_review_id").notNull(),
  rate: integer("rate").notNull(),
  reviewer: text("reviewer"),
  reviewerEmail: text("reviewer_email"),
  content: text("content").notNull(),
  profanity: text("profanity").array().notNull().default([]),
  reviewedAt: instant("reviewed_at").notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  removedAt: instant("removed_at"),
  responseBody: text("response_body"),
  responseUserId: integer("response_user_id"),
  respondedAt: instant("responded_at"),
  flagStatus: text("flag_status", {
    enum: ["open", "under_review", "accepted", "rejected", "withdrawn"],
  }),
  flagReason: text("flag_reason"),
  assignedUserId: integer("assigned_user_id"),
});
