import { jsonb, pgTable, text } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

export const signingKeys = pgTable("signing_keys", {
  kid: text("kid").primaryKey(),
  state: text("state", { enum: ["next", "current", "retired"] }).notNull(),
  publicJwk: jsonb("public_jwk").notNull(),
  sealedPrivateKey: text("sealed_private_key").notNull(),
  createdAt: instant("created_at").notNull(),
  activatedAt: instant("activated_at"),
  retiredAt: instant("retired_at"),
});
