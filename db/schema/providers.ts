import { boolean, integer, pgTable, primaryKey, text, unique } from "drizzle-orm/pg-core";

import { companyId, externalId, storeId, updatedAt } from "./companies.ts";
import { bytewise, id, instant } from "./columns.ts";

/** A review site with the credentials of its puller. The API calls it a provider. */
export const reviewSites = pgTable("review_sites", {
  id: id(),
  slug: text("slug").notNull().unique("review_sites_slug_key"),
  name: text("name").notNull(),
  /**
   * The provider's secret, sealed with the slug as associated data. The ciphertext cannot be opened for another
   * provider.
   */
  sealedSecret: text("sealed_secret").notNull(),
  /** The secret before the last rotation, sealed in the same way. It is accepted until it expires. */
  sealedPreviousSecret: text("sealed_previous_secret"),
  previousSecretExpiresAt: instant("previous_secret_expires_at"),
  /** Whether events without a signed timestamp are rejected. */
  requiresTimestamp: boolean("requires_timestamp").notNull().default(false),
});

export const storeReviewSites = pgTable(
  "store_review_sites",
  {
    id: id(),
    storeId: storeId().notNull(),
    reviewSiteId: integer("review_site_id")
      .notNull()
      .references(() => reviewSites.id),
    accountId: companyId("account_id").notNull(),
    partnerId: companyId("partner_id").notNull(),
    pullConnected: boolean("pull_connected").notNull(),
    pullErrorCode: text("pull_error_code"),
    postConnected: boolean("post_connected").notNull(),
    postErrorCode: text("post_error_code"),
    externalId: externalId().unique("store_review_sites_external_id"),
    updatedAt: updatedAt(),
  },
  (t) => [unique("store_review_sites_store_id_review_site_id_key").on(t.storeId, t.reviewSiteId)],
);

/**
 * The ids of events that providers have reported. They are unique per provider forever (contract 9.1); an event with a
 * known id changes nothing.
 */
export const providerEvents = pgTable(
  "provider_events",
  {
    reviewSiteId: integer("review_site_id").notNull(),
    id: bytewise("id").notNull(),
    receivedAt: instant("received_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.reviewSiteId, t.id] })],
);
