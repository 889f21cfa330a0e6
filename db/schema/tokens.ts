import { sql } from "drizzle-orm";
import { type AnyPgColumn, boolean, jsonb, pgTable, primaryKey, text } from "drizzle-orm/pg-core";

import { companyId, userId } from "./companies.ts";
import { bytewise, instant, timestamps, uniqueWhere } from "./columns.ts";

/**
 * Signing keys of tokens. next: published, but not used yet. current: signs. retired: published as long as a live token
 * has its kid. `bun run keys rotate` changes the states; the maintenance job `credentials` deletes a retired key that
 * no token needs any more.
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
    uniqueWhere("signing_keys_one_next", sql`state = 'next'`, t.state),
    uniqueWhere("signing_keys_one_current", sql`state = 'current'`, t.state),
  ],
);

export const oauthClients = pgTable("oauth_clients", {
  /** A UUID, or the id that an imported client had before the import. */
  clientId: text("client_id").primaryKey(),
  /** The company that owns the client; null for a client of the platform itself. */
  companyId: companyId("company_id"),
  name: text("name").notNull(),
  secretHash: text("secret_hash"),
  confidential: boolean("confidential").notNull(),
  firstParty: boolean("first_party").notNull(),
  redirectUris: text("redirect_uris").array().notNull(),
  scopes: text("scopes").array().notNull(),
  grantTypes: text("grant_types").array().notNull(),
  /** Whether the code flow requires PKCE. A public client must use it in any case. */
  requirePkce: boolean("require_pkce").notNull().default(false),
  /**
   * The third-party client whose token created this client. Tokens of that client may change this client; tokens of
   * other third-party clients may not.
   */
  createdBy: text("created_by").references((): AnyPgColumn => oauthClients.clientId, {
    onDelete: "set null",
  }),
  ...timestamps(),
});

/** One row per sign-in. It identifies the family of tokens that belong to the sign-in. */
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
  clientId: text("client_id").references(() => oauthClients.clientId, { onDelete: "set null" }),
  ip: text("ip"),
  userAgent: text("user_agent"),
  at: instant("at").notNull(),
  logoutTime: instant("logout_time"),
  /**
   * The time of the last proof of a second factor in this session. After single sign-on this is the time of the
   * sign-in.
   */
  factorAt: instant("factor_at"),
});

/** Live tokens. A JWT is valid only while its row exists, so a token is revoked by deleting its row (contract 4.3). */
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
        "service",
        "challenge",
      ],
    }).notNull(),
    userId: userId("user_id").notNull(),
    clientId: text("client_id").references(() => oauthClients.clientId, { onDelete: "cascade" }),
    familyId: bytewise("family_id").references(() => authenticationEvents.id),
    impersonatorId: userId("impersonator_id"),
    /**
     * The token that created this token, for a portal session or an impersonation. Deleting the parent deletes this
     * token.
     */
    parentJti: bytewise("parent_jti").references((): AnyPgColumn => tokens.jti, {
      onDelete: "cascade",
    }),
    scope: text("scope").notNull(),
    /** The pages that the token of a portal link may open; null for all other tokens, which are not restricted. */
    pages: text("pages").array(),
    kid: text("kid")
      .notNull()
      .references(() => signingKeys.kid),
    name: text("name"),
    /** The token of the dashboard, sealed with its jti and user as associated data, so that it can be shown again. */
    sealedToken: text("sealed_token"),
    issuedAt: instant("issued_at").notNull(),
    expiresAt: instant("expires_at"),
    lastUsedAt: instant("last_used_at"),
    /**
     * The instant at which a refresh token was redeemed. The row stays until it expires, so that a replay is
     * detected.
     */
    redeemedAt: instant("redeemed_at"),
  },
  (t) => [uniqueWhere("tokens_one_dashboard_pat", sql`kind = 'dashboard_pat'`, t.userId)],
);

/** The token that a row belongs to. The row is deleted with the token. */
export const tokenId = () => bytewise("jti").references(() => tokens.jti, { onDelete: "cascade" });

/** The uses of tokens that do not belong to a sign-in. The 100 newest rows of each token are kept. */
export const tokenUses = pgTable(
  "token_uses",
  {
    jti: tokenId().notNull(),
    /** Method and path as the route declares them. */
    route: text("route").notNull(),
    ip: text("ip").notNull(),
    firstUsedAt: instant("first_used_at").notNull(),
    lastUsedAt: instant("last_used_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.jti, t.route, t.ip] })],
);

/**
 * The state of an authorization code flow (RFC 6749, 4.1). A row is found by the hash of a secret that the browser or
 * the client holds.
 * - consent: the user has signed in at the service's page and is asked for consent.
 * - issued: the secret is the code; the token endpoint redeems it once.
 * - redeemed: the row is kept, so that a replay is detected.
 */
export const authorizationCodes = pgTable("authorization_codes", {
  secretHash: bytewise("secret_hash").primaryKey(),
  state: text("state", { enum: ["consent", "issued", "redeemed"] }).notNull(),
  clientId: text("client_id")
    .notNull()
    .references(() => oauthClients.clientId, { onDelete: "cascade" }),
  userId: userId("user_id").notNull(),
  redirectUri: text("redirect_uri").notNull(),
  /** The PKCE challenge (S256); null only for a confidential client that did not use PKCE. */
  codeChallenge: text("code_challenge"),
  scope: text("scope").notNull(),
  issuedAt: instant("issued_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  redeemedAt: instant("redeemed_at"),
  familyId: bytewise("family_id").references(() => authenticationEvents.id),
});

/** Origins that may embed a partner's portal in a frame. */
export const portalSettings = pgTable("portal_settings", {
  partnerId: companyId("partner_id").primaryKey(),
  /** The partner's key in the URLs of its portal pages. */
  key: bytewise("key").notNull().unique("portal_settings_key_key"),
  origins: text("origins").array().notNull(),
});

/** A link that opens selected pages once. Its row is deleted at the first use, and with the token that created it. */
export const portalLinks = pgTable("portal_links", {
  codeHash: bytewise("code_hash").primaryKey(),
  jti: tokenId().notNull(),
  scope: text("scope").notNull(),
  pages: text("pages").array().notNull(),
  expiresAt: instant("expires_at").notNull(),
  /** The partner's owner for whom an operator's link acts; null if the link acts for its creator. */
  actsAs: userId("acts_as"),
});
