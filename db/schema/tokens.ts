import { sql } from "drizzle-orm";
import {
  type AnyPgColumn,
  index,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";

import { bytewise, instant } from "./columns.ts";
import { signingKeys } from "./keys.ts";
import { oauthClients } from "./oauth.ts";
import { userId } from "./users.ts";

/** One row per sign-in: the family of the tokens that came from it. */
export const authenticationEvents = pgTable(
  "authentication_events",
  {
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
  },
  (t) => [index("authentication_events_user").on(t.userId, t.id.desc().nullsFirst())],
);

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
    index("tokens_user").on(t.userId),
    index("tokens_family").on(t.familyId),
    index("tokens_impersonator")
      .on(t.impersonatorId)
      .where(sql`impersonator_id is not null`),
    index("tokens_parent")
      .on(t.parentJti)
      .where(sql`parent_jti is not null`),
    index("tokens_client")
      .on(t.clientId)
      .where(sql`client_id is not null`),
    index("tokens_expiry")
      .on(t.expiresAt)
      .where(sql`expires_at is not null`),
    index("tokens_kid").on(t.kid),
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
export const authorizationCodes = pgTable(
  "authorization_codes",
  {
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
  },
  (t) => [
    index("authorization_codes_user").on(t.userId),
    index("authorization_codes_client").on(t.clientId),
    index("authorization_codes_expiry").on(t.expiresAt),
    index("authorization_codes_family")
      .on(t.familyId)
      .where(sql`family_id is not null`),
  ],
);
