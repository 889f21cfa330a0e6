import { sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  integer,
  json,
  pgTable,
  text,
  unique,
  uniqueIndex,
} from "drizzle-orm/pg-core";

import { userId } from "./companies.ts";
import { bigid, bytewise, id, instant } from "./columns.ts";

export const reviews = pgTable(
  "reviews",
  {
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
    /** The words that were last found, so that an update announces profanity once per change. */
    profanity: text("profanity").array().notNull().default([]),
    reviewedAt: instant("reviewed_at").notNull(),
    createdAt: instant("created_at").notNull(),
    updatedAt: instant("updated_at").notNull(),
    removedAt: instant("removed_at"),
    responseBody: text("response_body"),
    responseUserId: userId("response_user_id"),
    respondedAt: instant("responded_at"),
    /** open, under_review: an open flag. The others: closed; the account's flag-status action moves it. */
    flagStatus: text("flag_status", {
      enum: ["open", "under_review", "accepted", "rejected", "withdrawn"],
    }),
    flagReason: text("flag_reason"),
    assignedUserId: userId("assigned_user_id"),
  },
  (t) => [
    unique("reviews_store_review_site_id_external_review_id_key").on(
      t.storeReviewSiteId,
      t.externalReviewId,
    ),
  ],
);

/**
 * The audit trail, and the log from which immediate subscriptions are served: their entries are the rows with a
 * `sequence`, in its order, behind their offset (`outbox_offsets`). Together with its columns, actor, review or site, and metadata are the body of the webhook, fixed
 * here and never changed (contract 7.3); `json` keeps their text as written.
 */
export const reviewHistory = pgTable(
  "review_history",
  {
    id: bigid(),
    eventId: bytewise("event_id").notNull().unique("review_history_event_id_key"),
    partnerId: integer("partner_id").notNull(),
    accountId: integer("account_id").notNull(),
    storeId: integer("store_id").notNull(),
    reviewId: integer("review_id"),
    storeReviewSiteId: integer("store_review_site_id").notNull(),
    event: text("event").notNull(),
    axis: text("axis", { enum: ["pull", "post"] }),
    actor: json("actor").notNull(),
    review: json("review"),
    site: json("site"),
    metadata: json("metadata").notNull(),
    occurredAt: instant("occurred_at").notNull(),
    recordedAt: instant("recorded_at").notNull(),
    /** The place of the event at the immediate subscription of its partner, if that gets it (contract 7.2). */
    sequence: bigint("sequence", { mode: "number" }),
    subscriptionNumber: integer("subscription_number"),
    /** Of the body that this subscription gets: the payload mode at the time of the event. */
    isMinimal: boolean("is_minimal"),
    /** How many numbers before its own are not in the log; null for none. It shows a row that somebody has removed. */
    gap: integer("gap"),
  },
  (t) => [
    uniqueIndex("review_history_log")
      .on(t.subscriptionNumber, t.sequence)
      .where(sql`sequence is not null`),
  ],
);
