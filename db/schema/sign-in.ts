import { boolean, integer, pgTable, primaryKey, smallint, text, unique } from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant } from "./columns.ts";

/** Per normalised email, known or not; kept as a digest, because people type passwords into email fields. */
export const signInLocks = pgTable("sign_in_locks", {
  emailDigest: text("email_digest").primaryKey(),
  failures: integer("failures").notNull(),
  locks: integer("locks").notNull(),
  lockedUntil: instant("locked_until"),
  lastFailureAt: instant("last_failure_at").notNull(),
});

/**
 * What was asked for an email in the last 24 h, known or not: when codes were issued, and when wrong ones were tried.
 * An action that issues or tries a code holds this row until the commit, so that each sees those before it. Each budget
 * of an email's codes is another row, whose key is the digest of its name and the email (`budgetDigest`).
 */
export const emailCodeLimits = pgTable("email_code_limits", {
  emailDigest: text("email_digest").primaryKey(),
  issuedAt: instant("issued_at").array().notNull(),
  wrongAt: instant("wrong_at").array().notNull(),
  touchedAt: instant("touched_at").notNull(),
});

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
  (t) => [primaryKey({ columns: [t.emailDigest, t.network] })],
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
  (t) => [primaryKey({ columns: [t.emailDigest, t.type] })],
);

/** The link by which a user without a password sets the first one; the last one alone counts. */
export const invitations = pgTable("invitations", {
  userId: userId("user_id").primaryKey(),
  codeHash: text("code_hash").notNull().unique("invitations_code_hash_key"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
});

/** An outside identity provider of one company. Its domains say which email addresses it signs in. */
export const ssoConnections = pgTable("sso_connections", {
  id: bytewise("id").primaryKey(),
  companyId: companyId("company_id").notNull(),
  issuer: text("issuer").notNull(),
  clientId: text("client_id").notNull(),
  /** Sealed with company and connection id as context, so that a swapped ciphertext does not open. */
  sealedClientSecret: text("sealed_client_secret").notNull(),
  /** Whether the company's users in these domains may sign in with a password as well. */
  passwordLogin: boolean("password_login").notNull(),
  isActive: boolean("is_active").notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

const connectionId = () =>
  bytewise("connection_id")
    .notNull()
    .references(() => ssoConnections.id, { onDelete: "cascade" });

/** A domain belongs to one connection: /auth/discover has one answer. */
export const ssoDomains = pgTable("sso_domains", {
  /** As DNS writes it: ASCII, lower case, without a dot at the end. */
  domain: text("domain").primaryKey(),
  connectionId: connectionId(),
});

/** A user as an identity provider knows it. Matched by issuer and subject alone; an email never decides again. */
export const ssoIdentities = pgTable(
  "sso_identities",
  {
    issuer: text("issuer").notNull(),
    subject: text("subject").notNull(),
    userId: userId("user_id").notNull(),
    /** The connection through which it was linked; when that is deleted, so is the link. */
    connectionId: connectionId(),
    linkedAt: instant("linked_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.issuer, t.subject] }),
    // A second person whom the provider gives the address of the first does not get in as the first.
    unique("sso_identities_user_id_issuer_key").on(t.userId, t.issuer),
  ],
);

/** A browser on its way to the provider. */
export const ssoStates = pgTable("sso_states", {
  stateHash: text("state_hash").primaryKey(),
  connectionId: connectionId(),
  browserHash: text("browser_hash").notNull(),
  returnTo: text("return_to").notNull(),
  codeChallenge: text("code_challenge"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** Set by the callback, once. */
  consumedAt: instant("consumed_at"),
});

/** A sign-in that the provider confirmed, waiting for its exchange. */
export const ssoCodes = pgTable("sso_codes", {
  codeHash: text("code_hash").primaryKey(),
  userId: userId("user_id").notNull(),
  connectionId: connectionId(),
  codeChallenge: text("code_challenge"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** Set by the first exchange, right or wrong, and by a password reset. */
  consumedAt: instant("consumed_at"),
});
