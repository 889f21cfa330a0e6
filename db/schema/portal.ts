import { index, pgTable, text } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";
import { companyId } from "./companies.ts";
import { tokens } from "./tokens.ts";
import { userId } from "./users.ts";

/** Who may show a partner's portal in a frame. */
export const portalSettings = pgTable("portal_settings", {
  partnerId: companyId("partner_id").primaryKey(),
  /** Stands in the addresses of its pages. */
  key: bytewise("key").notNull().unique("portal_settings_key_key"),
  origins: text("origins").array().notNull(),
});

/** A link that opens chosen pages once: its row goes with the first use, and with the token that made it. */
export const portalLinks = pgTable(
  "portal_links",
  {
    codeHash: bytewise("code_hash").primaryKey(),
    jti: bytewise("jti")
      .notNull()
      .references(() => tokens.jti, { onDelete: "cascade" }),
    scope: text("scope").notNull(),
    pages: text("pages").array().notNull(),
    expiresAt: instant("expires_at").notNull(),
    /** The partner's owner in whose name an operator's link opens the pages; null for the maker's own name. */
    actsAs: userId("acts_as"),
  },
  (t) => [index("portal_links_jti").on(t.jti), index("portal_links_expiry").on(t.expiresAt)],
);
