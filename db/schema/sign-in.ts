import { integer, pgTable, smallint, text } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";

export const signInLocks = pgTable("sign_in_locks", {
  emailDigest: text("email_digest").primaryKey(),
  failures: integer("failures").notNull(),
  locks: integer("locks").notNull(),
  lockedUntil: instant("locked_until"),
  lastFailureAt: instant("last_failure_at").notNull(),
});

export const emailCodeLimits = pgTable("email_code_limits", {
  emailDigest: text("email_digest").primaryKey(),
  issuedAt: instant("issued_at").array().notNull(),
  wrongAt: instant("wrong_at").array().notNull(),
  touchedAt: instant("touched_at").notNull(),
});

export const emailCodes = pgTable("email_codes", {
  emailDigest: text("email_digest").notNull(),
  type: text("type", { enum: ["forgot_password", "change_password", "signup"] }).notNull(),
  userId: integer("user_id"),
  codeMac: text("code_mac").notNull(),
  tries: smallint("tries").notNull(),
  issuedAt: instant("issued_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  consumedAt: instant("consumed_at"),
});
