import { sql } from "drizzle-orm";
import { index, jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

/**
 * next: published, does not sign yet. current: signs. retired: published while a live token carries its kid.
 * `bun run keys rotate` moves them on; the purge deletes a retired key that no token needs.
 */
export const signingKeys = pgTable(
  "signing_keys",
  {
    kid: text("kid").primaryKey(),
    state: text("state", { enum: ["next", "current", "retired"] }).notNull(),
    publicJwk: jsonb("public_jwk").$type<Record<string, unknown>>().notNull(),
    sealedPrivateKey: text("sealed_private_key").notNull(),
    createdAt: instant("created_at").notNull(),
    activatedAt: instant("activated_at"),
    retiredAt: instant("retired_at"),
  },
  (t) => [
    uniqueIndex("signing_keys_one_next")
      .on(t.state)
      .where(sql`state = 'next'`),
    uniqueIndex("signing_keys_one_current")
      .on(t.state)
      .where(sql`state = 'current'`),
    index("signing_keys_retired")
      .on(t.retiredAt)
      .where(sql`state = 'retired'`),
  ],
);
