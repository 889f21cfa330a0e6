import { boolean, index, pgTable, primaryKey, text, unique } from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";
import { companyId } from "./companies.ts";
import { userId } from "./users.ts";

/** An outside identity provider of one company. Its domains say which email addresses it signs in. */
export const ssoConnections = pgTable(
  "sso_connections",
  {
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
  },
  (t) => [index("sso_connections_company").on(t.companyId, t.id)],
);

const connectionId = () =>
  bytewise("connection_id")
    .notNull()
    .references(() => ssoConnections.id, { onDelete: "cascade" });

/** A domain belongs to one connection: /auth/discover has one answer. */
export const ssoDomains = pgTable(
  "sso_domains",
  {
    /** As DNS writes it: ASCII, lower case, without a dot at the end. */
    domain: text("domain").primaryKey(),
    connectionId: connectionId(),
  },
  (t) => [index("sso_domains_connection").on(t.connectionId)],
);

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
    index("sso_identities_connection").on(t.connectionId),
  ],
);

/** A browser on its way to the provider. */
export const ssoStates = pgTable(
  "sso_states",
  {
    stateHash: text("state_hash").primaryKey(),
    connectionId: connectionId(),
    browserHash: text("browser_hash").notNull(),
    returnTo: text("return_to").notNull(),
    codeChallenge: text("code_challenge"),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    /** Set by the callback, once. */
    consumedAt: instant("consumed_at"),
  },
  (t) => [
    index("sso_states_expiry").on(t.expiresAt),
    index("sso_states_connection").on(t.connectionId),
  ],
);

/** A sign-in that the provider confirmed, waiting for its exchange. */
export const ssoCodes = pgTable(
  "sso_codes",
  {
    codeHash: text("code_hash").primaryKey(),
    userId: userId("user_id").notNull(),
    connectionId: connectionId(),
    codeChallenge: text("code_challenge"),
    createdAt: instant("created_at").notNull(),
    expiresAt: instant("expires_at").notNull(),
    /** Set by the first exchange, right or wrong, and by a password reset. */
    consumedAt: instant("consumed_at"),
  },
  (t) => [
    index("sso_codes_expiry").on(t.expiresAt),
    index("sso_codes_user").on(t.userId),
    index("sso_codes_connection").on(t.connectionId),
  ],
);
