import { index, integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { instant } from "./columns.ts";
import { userId } from "./users.ts";

/** Per normalised email, known or not; kept as a digest, because people type passwords into email fields. */
export const signInLocks = pgTable(
  "sign_in_locks",
  {
    emailDigest: text("email_digest").primaryKey(),
    failures: integer("failures").notNull(),
    locks: integer("locks").notNull(),
    lockedUntil: instant("locked_until"),
    lastFailureAt: instant("last_failure_at").notNull(),
  },
  (t) => [index("sign_in_locks_age").on(t.lastFailureAt)],
);

/**
 * What was asked for an email in the last 24 h, known or not: when codes were issued, and when wrong ones were tried.
 * An action that issues or tries a code holds this row until the commit, so that each sees those before it. Each budget
 * of an email's codes is another row, whose key is the digest of its name and the email (`budgetDigest`).
 */
export const emailCodeLimits = pgTable(
  "email_code_limits",
  {
    emailDigest: text("email_digest").primaryKey(),
    issuedAt: instant("issued_at").array().notNull(),
    wrongAt: instant("wrong_at").array().notNull(),
    touchedAt: instant("touched_at").notNull(),
  },
  (t) => [index("email_code_limits_age").on(t.touchedAt)],
);

/**
 * When wrong codes were tried for an email from one address, in the last 24 h: whoever tries holds the email's row in
 * `emailCodeLimits`.
 */
export const emailCodeTries = pgTable(
  "email_code_tries",
  {
    emailDigest: text("email_digest").notNull(),
    /** An IPv4 address, or the /64 of an IPv6 address. */
    network: text("network").notNull(),
    wrongAt: instant("wrong_at").array().notNull(),
    touchedAt: instant("touched_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.emailDigest, t.network] }),
    index("email_code_tries_age").on(t.touchedAt),
  ],
);

/** The last code of an email and purpose. A code whose userId is null was sent to nobody, unless it is for a signup. */
export const emailCodes = pgTable(
  "email_codes",
  {
    emailDigest: text("email_digest").notNull(),
    type: text("type", { enum: ["forgot_password", "change_password", "signup"] }).notNull(),
    /** No foreign key: its check would be work that an unknown email does not cost. */
    userId: integer("user_id"),
    codeMac: text("code_mac").notNull(),
    tries: smallint("tries").notNull(),
    issuedAt: instant("issued_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    consumedAt: instant("consumed_at"),
  },
  (t) => [
    primaryKey({ columns: [t.emailDigest, t.type] }),
    index("email_codes_expiry").on(t.expiresAt),
  ],
);

/** The link by which a user without a password sets the first one; the last one alone counts. */
export const invitations = pgTable("invitations", {
  userId: userId("user_id").primaryKey(),
  codeHash: text("code_hash").notNull().unique("invitations_code_hash_key"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
});
