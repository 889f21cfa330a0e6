import {
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  unique,
} from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant, timestamps } from "./columns.ts";

/**
 * Counters of sign-in failures per normalised email, whether or not the email is known. The email is stored as a
 * digest, because people sometimes type passwords into email fields.
 */
export const signInLocks = pgTable("sign_in_locks", {
  emailDigest: text("email_digest").primaryKey(),
  failures: integer("failures").notNull(),
  locks: integer("locks").notNull(),
  lockedUntil: instant("locked_until"),
  lastFailureAt: instant("last_failure_at").notNull(),
});

/**
 * The codes of an email within the last 24 h, whether or not the email is known: when codes were issued, and when wrong
 * codes were entered. A transaction that issues or verifies a code locks this row until its commit, so that such
 * transactions see each other's changes. Each budget of an email's codes is a separate row; its key is the digest of
 * budget name and email (`budgetDigest`).
 */
export const emailCodeLimits = pgTable("email_code_limits", {
  emailDigest: text("email_digest").primaryKey(),
  issuedAt: instant("issued_at").array().notNull(),
  wrongAt: instant("wrong_at").array().notNull(),
  touchedAt: instant("touched_at").notNull(),
});

/**
 * Wrong codes per email and network within the last 24 h. A transaction that uses these rows must have locked the
 * email's row in `emailCodeLimits`.
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

/**
 * The last code that was issued for an email and purpose. A code without a user id was not mailed, unless it is for a
 * signup.
 */
export const emailCodes = pgTable(
  "email_codes",
  {
    emailDigest: text("email_digest").notNull(),
    type: text("type", { enum: ["forgot_password", "change_password", "signup"] }).notNull(),
    /** There is no foreign key, because its check would take time only for known emails. */
    userId: integer("user_id"),
    codeMac: text("code_mac").notNull(),
    tries: smallint("tries").notNull(),
    issuedAt: instant("issued_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    consumedAt: instant("consumed_at"),
  },
  (t) => [primaryKey({ columns: [t.emailDigest, t.type] })],
);

/** The link with which a user without a password sets the first one. Only the newest link of a user is valid. */
export const invitations = pgTable("invitations", {
  userId: userId("user_id").primaryKey(),
  codeHash: text("code_hash").notNull().unique("invitations_code_hash_key"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
});

/** An external identity provider of one company. Its domains determine which email addresses may sign in through it. */
export const ssoConnections = pgTable("sso_connections", {
  id: bytewise("id").primaryKey(),
  companyId: companyId("company_id").notNull(),
  issuer: text("issuer").notNull(),
  clientId: text("client_id").notNull(),
  /**
   * The client secret at the identity provider, sealed with the ids of company and SSO connection as associated data.
   * The ciphertext cannot be opened in another row.
   */
  sealedClientSecret: text("sealed_client_secret").notNull(),
  /** Whether the company's users in these domains may also sign in with a password. */
  passwordLogin: boolean("password_login").notNull(),
  /** Whether email addresses in proved domains count as verified if the identity provider does not say so. */
  trustEmail: boolean("trust_email").notNull().default(false),
  isActive: boolean("is_active").notNull(),
  /** The role of users that are created at their first sign-in; null if no users are created. */
  newUserRole: text("new_user_role", {
    enum: ["partner_owner", "partner_admin", "account_owner", "account_user", "location_user"],
  }),
  /** The stores of users that are created as location users. */
  newUserStoreIds: integer("new_user_store_ids").array().notNull().default([]),
  ...timestamps(),
});

const connectionId = () =>
  bytewise("connection_id")
    .notNull()
    .references(() => ssoConnections.id, { onDelete: "cascade" });

/**
 * The email domains of SSO connections. A domain belongs to one SSO connection, so that /auth/discover has one answer.
 */
export const ssoDomains = pgTable("sso_domains", {
  /** The domain as in DNS: in ASCII and lower case, without a trailing dot. */
  domain: text("domain").primaryKey(),
  connectionId: connectionId(),
  /** The time at which a DNS record proved that the company owns the domain; null if this is not proved. */
  provedAt: instant("proved_at"),
});

/**
 * A user's identity at an external identity provider. Sign-ins are matched only by issuer and subject. The email is
 * used only to create the link.
 */
export const ssoIdentities = pgTable(
  "sso_identities",
  {
    /** The id of this link in paths. A link that is created again gets another id. */
    id: integer("id").notNull().unique("sso_identities_id_key").generatedAlwaysAsIdentity(),
    issuer: text("issuer").notNull(),
    subject: text("subject").notNull(),
    userId: userId("user_id").notNull(),
    /** The SSO connection through which the user was linked; deleting it deletes the link. */
    connectionId: connectionId(),
    linkedAt: instant("linked_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.issuer, t.subject] }),
    // Prevents that a second identity with the same email is linked to the user of the first one.
    unique("sso_identities_user_id_issuer_key").on(t.userId, t.issuer),
  ],
);

/** A single sign-on that is in progress: the user's browser is at the identity provider. */
export const ssoStates = pgTable("sso_states", {
  stateHash: text("state_hash").primaryKey(),
  connectionId: connectionId(),
  browserHash: text("browser_hash").notNull(),
  returnTo: text("return_to").notNull(),
  codeChallenge: text("code_challenge"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** The instant at which the callback used this state; a state can be used once. */
  consumedAt: instant("consumed_at"),
});

/** A sign-in that the identity provider confirmed, until its code is exchanged. */
export const ssoCodes = pgTable("sso_codes", {
  codeHash: text("code_hash").primaryKey(),
  userId: userId("user_id").notNull(),
  connectionId: connectionId(),
  codeChallenge: text("code_challenge"),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** The instant at which the code was used up: by the first exchange, whether valid or not, or by a password reset. */
  consumedAt: instant("consumed_at"),
});

/**
 * The keys of requests that create something, with their responses (contract 2.14). Only release 0.1.0 writes a row
 * without a response, before it processes the request.
 */
export const keyedRequests = pgTable(
  "keyed_requests",
  {
    /** The id of the user, a colon, and the key that the user sent. */
    key: text("key").primaryKey(),
    /**
     * The digest of path, body and authority of the request (src/http/idempotency.ts); release 0.1.0 does not include
     * the authority.
     */
    digest: text("digest").notNull(),
    /** The body of the response, sealed with the key as associated data. */
    sealedResponse: text("sealed_response"),
    createdAt: instant("created_at").notNull(),
  },
  (t) => [index("keyed_requests_created_at").on(t.createdAt)],
);
