import {
  bigint,
  boolean,
  integer,
  json,
  jsonb,
  pgTable,
  smallint,
  text,
  timestamp,
  uuid,
} from "drizzle-orm/pg-core";

// Columns and their types, for the query builder. The SQL in db/migrations is the truth about keys, checks, indexes
// and partitions; tests/integration/schema.test.ts holds the two together.

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

export const providerEvents = pgTable("provider_events", {
  reviewSiteId: integer("review_site_id").notNull(),
  id: text("id").notNull(),
  receivedAt: instant("received_at").notNull(),
});

export const reviewHistory = pgTable("review_history", {
  id: bigid(),
  eventId: text("event_id").notNull(),
  partnerId: integer("partner_id").notNull(),
  accountId: integer("account_id").notNull(),
  storeId: integer("store_id").notNull(),
  reviewId: integer("review_id"),
  storeReviewSiteId: integer("store_review_site_id").notNull(),
  event: text("event").notNull(),
  axis: text("axis", { enum: ["pull", "post"] }),
  actor: json("actor").notNull(),
  review: json("review"),
  site: json("site"),
  metadata: json("metadata").notNull(),
  occurredAt: instant("occurred_at").notNull(),
  recordedAt: instant("recorded_at").notNull(),
});

export const webhookSubscriptions = pgTable("webhook_subscriptions", {
  id: text("id").primaryKey(),
  partnerId: integer("partner_id").notNull(),
  shard: smallint("shard").notNull(),
  label: text("label").notNull(),
  webhookUrl: text("webhook_url").notNull(),
  deliveryKind: text("delivery_kind", { enum: ["immediate", "batch"] }).notNull(),
  batchIntervalHours: integer("batch_interval_hours"),
  events: text("events").array(),
  payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
  suppressNativeNotifications: boolean("suppress_native_notifications").notNull(),
  ordering: text("ordering", { enum: ["subscription", "review"] }).notNull(),
  state: text("state", { enum: ["active", "disabled", "deleted"] }).notNull(),
  consecutiveFailureCount: integer("consecutive_failure_count").notNull().default(0),
  sealedSecret: text("sealed_secret").notNull(),
  secretFingerprint: text("secret_fingerprint").notNull(),
  sealedPreviousSecret: text("sealed_previous_secret"),
  previousSecretExpiresAt: instant("previous_secret_expires_at"),
  lastBatchDispatchedAt: instant("last_batch_dispatched_at"),
  nextBatchAt: instant("next_batch_at"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  disabledAt: instant("disabled_at"),
  disabledReason: text("disabled_reason"),
  deletedAt: instant("deleted_at"),
});

export const outboxSequences = pgTable("outbox_sequences", {
  subscriptionId: text("subscription_id").primaryKey(),
  lastSequence: bigint("last_sequence", { mode: "number" }).notNull().default(0),
});

const entry = {
  subscriptionId: text("subscription_id").notNull(),
  sequence: bigint("sequence", { mode: "number" }).notNull(),
  eventId: text("event_id").notNull(),
  event: text("event").notNull(),
  isTest: boolean("is_test").notNull().default(false),
  payloadMode: text("payload_mode", { enum: ["full", "minimal"] }).notNull(),
  reviewHistoryId: bigint("review_history_id", { mode: "number" }),
  reviewId: integer("review_id"),
  batchJobId: text("batch_job_id"),
  round: smallint("round").notNull().default(1),
  recordedAt: instant("recorded_at").notNull(),
};

export const outbox = pgTable("outbox", {
  ...entry,
  shard: smallint("shard").notNull(),
  attempt: smallint("attempt").notNull().default(1),
  state: text("state", { enum: ["pending", "waiting"] })
    .notNull()
    .default("pending"),
  dueAt: instant("due_at"),
});

export const settledEntries = pgTable("settled_entries", {
  ...entry,
  state: text("state", { enum: ["delivered", "failed", "skipped"] }).notNull(),
  reason: text("reason", { enum: ["deleted", "expired", "skipped"] }),
  settledAt: instant("settled_at").notNull(),
});

export const batchEntries = pgTable("batch_entries", {
  subscriptionId: text("subscription_id").notNull(),
  reviewHistoryId: bigint("review_history_id", { mode: "number" }).notNull(),
});

export const batchJobs = pgTable("batch_jobs", {
  id: text("id").primaryKey(),
  subscriptionId: text("subscription_id").notNull(),
  reviewId: integer("review_id").notNull(),
  windowFrom: instant("window_from").notNull(),
  windowTo: instant("window_to").notNull(),
  events: integer("events").notNull(),
});

export const deliveryAttempts = pgTable("delivery_attempts", {
  id: text("id").notNull(),
  subscriptionId: text("subscription_id").notNull(),
  sequence: bigint("sequence", { mode: "number" }).notNull(),
  eventId: text("event_id").notNull(),
  event: text("event").notNull(),
  round: smallint("round").notNull(),
  attempt: smallint("attempt").notNull(),
  startedAt: instant("started_at").notNull(),
  durationMs: integer("duration_ms").notNull(),
  outcome: text("outcome", { enum: ["delivered", "retry", "failed", "interrupted"] }).notNull(),
  statusCode: smallint("status_code"),
  errorCode: text("error_code"),
  requestHeaders: json("request_headers").notNull(),
  requestBody: text("request_body").notNull(),
  responseHeaders: json("response_headers"),
  responseExcerpt: text("response_excerpt"),
  responseTruncated: boolean("response_truncated").notNull(),
  nextAttemptAt: instant("next_attempt_at"),
});

export const dispatchers = pgTable("dispatchers", {
  id: text("id").primaryKey(),
  startedAt: instant("started_at").notNull(),
  renewedAt: instant("renewed_at").notNull(),
});

export const shards = pgTable("shards", {
  id: smallint("id").primaryKey(),
  dispatcherId: text("dispatcher_id"),
  epoch: bigint("epoch", { mode: "number" }).notNull().default(0),
});
