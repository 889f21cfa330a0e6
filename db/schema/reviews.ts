import { sql } from "drizzle-orm";
import { boolean, integer, json, pgTable, text, unique } from "drizzle-orm/pg-core";

import { externalId, userId } from "./companies.ts";
import { bigid, bigNumber, bytewise, id, instant, timestamps, uniqueWhere } from "./columns.ts";

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
    /** The profane words of the current text, so that an update is reported only if they have changed. */
    profanity: text("profanity").array().notNull().default([]),
    reviewedAt: instant("reviewed_at").notNull(),
    ...timestamps(),
    removedAt: instant("removed_at"),
    responseBody: text("response_body"),
    responseUserId: userId("response_user_id"),
    respondedAt: instant("responded_at"),
    /**
     * State of the review's flag. In the states open and under_review the flag is open; in the other states it is
     * closed. The actions `review_flagged` and `flag_status_changed` change the state.
     */
    flagStatus: text("flag_status", {
      enum: ["open", "under_review", "accepted", "rejected", "withdrawn"],
    }),
    flagReason: text("flag_reason"),
    assignedUserId: userId("assigned_user_id"),
    externalId: externalId(),
    isImported: boolean("is_imported").notNull().default(false),
    /**
     * The time at which the reviewer was erased. Later reports of the site do not fill the texts of the review again
     * (contract 10.8).
     */
    erasedAt: instant("erased_at"),
  },
  (t) => [
    uniqueWhere("reviews_external_id", sql`external_id is not null`, t.externalId),
    unique("reviews_store_review_site_id_external_review_id_key").on(
      t.storeReviewSiteId,
      t.externalReviewId,
    ),
  ],
);

/**
 * The history of all events. It is also the log of immediate subscriptions: their entries are the rows with a
 * `sequence` after their offset (`outbox_offsets`), in the order of sequence numbers.
 *
 * Actor, review or site, metadata and the other columns form the body of the webhook. They never change after the
 * insert (contract 7.3), except by an erasure, which replaces everything that identifies a person and sets `erased_at`
 * (contract 10.8). The type `json` keeps their text unchanged.
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
    /**
     * The sequence number of the event in the log of the partner's immediate subscription; null if the subscription
     * does not receive the event (contract 7.2).
     */
    sequence: bigNumber("sequence"),
    subscriptionNumber: integer("subscription_number"),
    /** Whether that subscription had `payload_mode: minimal` at the time of the event. */
    isMinimal: boolean("is_minimal"),
    /**
     * The number of sequence numbers directly before this one that never belonged to the log; null for none. A larger
     * gap in the log means that rows were deleted.
     */
    gap: integer("gap"),
    /**
     * How many sequence numbers before this one belong to no event of the log; null for none. `sequence` without them
     * is the number of the event at its subscription, which has no gaps (contract 7.19).
     */
    unlogged: bigNumber("unlogged"),
    /** Whether the row came from an import (contract 10.9). Such a row was never an event of a subscription. */
    isImported: boolean("is_imported").notNull().default(false),
    erasedAt: instant("erased_at"),
  },
  (t) => [
    uniqueWhere("review_history_log", sql`sequence is not null`, t.subscriptionNumber, t.sequence),
  ],
);

/** The columns of an event that may be large. */
export const EVENT_JSON = [
  reviewHistory.actor,
  reviewHistory.review,
  reviewHistory.site,
  reviewHistory.metadata,
] as const;
