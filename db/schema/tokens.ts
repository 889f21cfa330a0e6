import { sql } from "drizzle-orm";
import {
  type AnyPgColumn,
  boolean,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant } from "./columns.ts";

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
  ],
);

export const oauthClients = pgTable("oauth_clients", {
  clientId: uuid("client_id").primaryKey(),
  /** Null: a client of the platform itself. */
  companyId: companyId("company_id"),
  name: text("name").notNull(),
  secretHash: text("secret_hash"),
  confidential: boolean("confidential").notNull(),
  firstParty: boolean("first_party").notNull(),
  redirectUris: text("redirect_uris").array().notNull(),
  scopes: text("scopes").array().notNull(),
  grantTypes: text("grant_types").array().notNull(),
  /** The third-party client by whose token it was made: tokens of that one may touch it, those of others not. */
  createdBy: uuid("created_by").references((): AnyPgColumn => oauthClients.clientId, {
    onDelete: "set null",
  }),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/** One row per sign-in: the family of the tokens that came from it. */
export const authenticationEvents = pgTable("authentication_events", {
  /** A ULID, so that ids order sign-ins by time. */
  id: bytewise("id").primaryKey(),
  userId: userId("user_id").notNull(),
  method: text("method", {
    enum: [
      "login",
      "password_grant",
      "authorization_code",
      "sso",
      "password_reset",
      "impersonation",
      "portal",
    ],
  }).notNull(),
  clientId: uuid("client_id").references(() => oauthClients.clientId, { onDelete: "set null" }),
  ip: text("ip"),
  userAgent: text("user_agent"),
  at: instant("at").notNull(),
  logoutTime: instant("logout_time"),
});

/** A JWT counts only while its row lives: revoking is deleting (contract 4.3). */
export const tokens = pgTable(
  "tokens",
  {
    jti: bytewise("jti").primaryKey(),
    kind: text("kind", {
      enum: [
        "access",
        "refresh",
        "dashboard_pat",
        "api_pat",
        "impersonation",
        "password_reset",
        "portal",
      ],
    }).notNull(),
    userId: userId("user_id").notNull(),
    clientId: uuid("client_id").references(() => oauthClients.clientId, { onDelete: "cascade" }),
    familyId: bytewise("family_id").references(() => authenticationEvents.id),
    impersonatorId: userId("impersonator_id"),
    /** The token that made this one, of a portal session or an impersonation, and with which this one ends. */
    parentJti: bytewise("parent_jti").references((): AnyPgColumn => tokens.jti, {
      onDelete: "cascade",
    }),
    scope: text("scope").notNull(),
    /** What the token of a portal link opens; null of every other one, which is not held to pages. */
    pages: text("pages").array(),
    kid: text("kid")
      .notNull()
      .references(() => signingKeys.kid),
    name: text("name"),
    /** The dashboard token is viewable again; sealed with its jti and user as context. */
    sealedToken: text("sealed_token"),
    issuedAt: instant("issued_at").notNull(),
    expiresAt: instant("expires_at"),
    lastUsedAt: instant("last_used_at"),
    /** A redeemed refresh token stays until it expires, so that a replay is recognised. */
    redeemedAt: instant("redeemed_at"),
  },
  (t) => [
    uniqueIndex("tokens_one_dashboard_pat")
      .on(t.userId)
      .where(sql`kind = 'dashboard_pat'`),
  ],
);

/** Where tokens that live apart from a sign-in are used; of each token the hundred newest rows are kept. */
export const tokenUses = pgTable(
  "token_uses",
  {
    jti: bytewise("jti")
      .notNull()
      .references(() => tokens.jti, { onDelete: "cascade" }),
    /** The method and the path, as the route declares it. */
    route: text("route").notNull(),
    ip: text("ip").notNull(),
    firstUsedAt: instant("first_used_at").notNull(),
    lastUsedAt: instant("last_used_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.jti, t.route, t.ip] })],
);

/**
 * The authorization code flow (RFC 6749, 4.1). A row is found by the hash of a secret that a browser or a client holds.
 * consent: the user has signed in on the service's page and is asked. issued: the secret is the code; the token endpoint
 * moves it to redeemed, once. redeemed: kept, so that a replay is recognised.
 */
export const authorizationCodes = pgTable("authorization_codes", {
  secretHash: bytewise("secret_hash").primaryKey(),
  state: text("state", { enum: ["consent", "issued", "redeemed"] }).notNull(),
  clientId: uuid("client_id")
    .notNull()
    .references(() => oauthClients.clientId, { onDelete: "cascade" }),
  userId: userId("user_id").notNull(),
  redirectUri: text("redirect_uri").notNull(),
  /** Of PKCE with S256; null only where a confidential client did without. */
  codeChallenge: text("code_challenge"),
  scope: text("scope").notNull(),
  issuedAt: instant("issued_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  redeemedAt: instant("redeemed_at"),
  familyId: bytewise("family_id").references(() => authenticationEvents.id),
});

/** Who may show a partner's portal in a frame. */
export const portalSettings = pgTable("portal_settings", {
  partnerId: companyId("partner_id").primaryKey(),
  /** Stands in the addresses of its pages. */
  key: bytewise("key").notNull().unique("portal_settings_key_key"),
  origins: text("origins").array().notNull(),
});

/** A link that opens chosen pages once: its row goes with the first use, and with the token that made it. */
export const portalLinks = pgTable("portal_links", {
  codeHash: bytewise("code_hash").primaryKey(),
  jti: bytewise("jti")
    .notNull()
    .references(() => tokens.jti, { onDelete: "cascade" }),
  scope: text("scope").notNull(),
  pages: text("pages").array().notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** The partner's owner in whose name an operator's link opens the pages; null for the maker's own name. */
  actsAs: userId("acts_as"),
});
