import {
  bigint,
  boolean,
  integer,
  jsonb,
  pgTable,
  smallint,
  text,
  timestamp,
  uuid,
} from "drizzle-orm/pg-core";

// Columns and their types, for the tables that are used through the query builder. The SQL in db/migrations is the truth
// about keys, checks, indexes and partitions; tests/integration/schema.test.ts holds the two together.

const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 3 });
const id = () => integer("id").primaryKey().generatedAlwaysAsIdentity();
const bigid = () => bigint("id", { mode: "number" }).primaryKey().generatedAlwaysAsIdentity();

export const plans = pgTable("plans", {
  id: id(),
  name: text("name").notNull(),
  features: text("features").array().notNull(),
});

export const companies = pgTable("companies", {
  id: id(),
  type: text("type", { enum: ["platform", "partner", "account"] }).notNull(),
  name: text("name").notNull(),
  partnerId: integer("partner_id"),
  planId: integer("plan_id"),
  isActive: boolean("is_active").notNull().default(true),
  primaryColor: text("primary_color").notNull(),
  logoUrl: text("logo_url"),
  whiteLabelEnabled: boolean("white_label_enabled").notNull().default(false),
  brandName: text("brand_name"),
  whiteLabelDomain: text("white_label_domain"),
  createdAt: instant("created_at").notNull(),
});

export const stores = pgTable("stores", {
  id: id(),
  accountId: integer("account_id").notNull(),
  partnerId: integer("partner_id").notNull(),
  name: text("name").notNull(),
});

export const users = pgTable("users", {
  id: id(),
  companyId: integer("company_id").notNull(),
  email: text("email").notNull(),
  name: text("name").notNull(),
  role: text("role", {
    enum: [
      "super_admin",
      "partner_owner",
      "partner_admin",
      "account_owner",
      "account_user",
      "location_user",
    ],
  }).notNull(),
  passwordHash: text("password_hash"),
  isActive: boolean("is_active").notNull().default(true),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const userStores = pgTable("user_stores", {
  userId: integer("user_id").notNull(),
  storeId: integer("store_id").notNull(),
});

export const signingKeys = pgTable("signing_keys", {
  kid: text("kid").primaryKey(),
  state: text("state", { enum: ["next", "current", "retired"] }).notNull(),
  publicJwk: jsonb("public_jwk").notNull(),
  sealedPrivateKey: text("sealed_private_key").notNull(),
  createdAt: instant("created_at").notNull(),
  activatedAt: instant("activated_at"),
  retiredAt: instant("retired_at"),
});

export const oauthClients = pgTable("oauth_clients", {
  clientId: uuid("client_id").primaryKey(),
  companyId: integer("company_id"),
  name: text("name").notNull(),
  secretHash: text("secret_hash"),
  confidential: boolean("confidential").notNull(),
  firstParty: boolean("first_party").notNull(),
  redirectUris: text("redirect_uris").array().notNull(),
  scopes: text("scopes").array().notNull(),
  grantTypes: text("grant_types").array().notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const authenticationEvents = pgTable("authentication_events", {
  id: text("id").primaryKey(),
  userId: integer("user_id").notNull(),
  method: text("method", {
    enum: [
      "login",
      "password_grant",
      "authorization_code",
      "sso",
      "password_reset",
      "impersonation",
    ],
  }).notNull(),
  clientId: uuid("client_id"),
  ip: text("ip"),
  userAgent: text("user_agent"),
  at: instant("at").notNull(),
  logoutTime: instant("logout_time"),
});

export const tokens = pgTable("tokens", {
  jti: text("jti").primaryKey(),
  kind: text("kind", {
    enum: ["access", "refresh", "dashboard_pat", "api_pat", "impersonation", "password_reset"],
  }).notNull(),
  userId: integer("user_id").notNull(),
  clientId: uuid("client_id"),
  familyId: text("family_id"),
  impersonatorId: integer("impersonator_id"),
  scope: text("scope").notNull(),
  kid: text("kid").notNull(),
  name: text("name"),
  sealedToken: text("sealed_token"),
  issuedAt: instant("issued_at").notNull(),
  expiresAt: instant("expires_at"),
  lastUsedAt: instant("last_used_at"),
  redeemedAt: instant("redeemed_at"),
});

export const signInLocks = pgTable("sign_in_locks", {
  emailDigest: text("email_digest").primaryKey(),
  failures: integer("failures").notNull(),
  locks: integer("locks").notNull(),
  lockedUntil: instant("locked_until"),
  lastFailureAt: instant("last_failure_at").notNull(),
});

export const ssoConnections = pgTable("sso_connections", {
  id: text("id").primaryKey(),
  companyId: integer("company_id").notNull(),
  issuer: text("issuer").notNull(),
  clientId: text("client_id").notNull(),
  sealedClientSecret: text("sealed_client_secret").notNull(),
  passwordLogin: boolean("password_login").notNull(),
  isActive: boolean("is_active").notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const ssoDomains = pgTable("sso_domains", {
  domain: text("domain").primaryKey(),
  connectionId: text("connection_id").notNull(),
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

export const auditLog = pgTable("audit_log", {
  id: bigid(),
  at: instant("at").notNull(),
  action: text("action").notNull(),
  actorId: integer("actor_id"),
  impersonatorId: integer("impersonator_id"),
  companyId: integer("company_id"),
  ip: text("ip"),
  userAgent: text("user_agent"),
  requestId: text("request_id"),
  details: jsonb("details").notNull(),
});

export const reviewSites = pgTable("review_sites", {
  id: id(),
  slug: text("slug").notNull(),
  name: text("name").notNull(),
  sealedSecret: text("sealed_secret").notNull(),
});

export const storeReviewSites = pgTable("store_review_sites", {
  id: id(),
  storeId: integer("store_id").notNull(),
  reviewSiteId: integer("review_site_id").notNull(),
  accountId: integer("account_id").notNull(),
  partnerId: integer("partner_id").notNull(),
  pullConnected: boolean("pull_connected").notNull(),
  pullErrorCode: text("pull_error_code"),
  postConnected: boolean("post_connected").notNull(),
  postErrorCode: text("post_error_code"),
});

export const reviews = pgTable("reviews", {
  id: id(),
  partnerId: integer("partner_id").notNull(),
  accountId: integer("account_id").notNull(),
  storeId: integer("store_id").notNull(),
  storeReviewSiteId: integer("store_review_site_id").notNull(),
  externalReviewId: text("external_review_id").notNull(),
  rate: integer("rate").notNull(),
  reviewer: text("reviewer"),
  reviewerEmail: text("reviewer_email"),
  content: text("content").notNull(),
  profanity: text("profanity").array().notNull().default([]),
  reviewedAt: instant("reviewed_at").notNull(),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  removedAt: instant("removed_at"),
  responseBody: text("response_body"),
  responseUserId: integer("response_user_id"),
  respondedAt: instant("responded_at"),
  flagStatus: text("flag_status", {
    enum: ["open", "under_review", "accepted", "rejected", "withdrawn"],
  }),
  flagReason: text("flag_reason"),
  assignedUserId: integer("assigned_user_id"),
});
