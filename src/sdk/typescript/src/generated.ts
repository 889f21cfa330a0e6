// Written by scripts/sdk.ts from the OpenAPI document.
import type { Pages, Request, RequestOptions } from "./requests.ts";

export type Login = {
  /** An email address. */
  email: string;
  /** The password. */
  password: string;
  /** Accepted and ignored. */
  rememberMe?: boolean;
};

/** A user. */
export type User = {
  /** The id. */
  id: number;
  /** An email address. */
  email: string;
  /** The name. */
  name: string;
  /** Role of the user. */
  role: string;
  /** Id of the company. */
  company_id: number;
  /** Ids of the stores that a location user may see. */
  store_ids: number[];
};

/** The company that the user belongs to. */
export type Company = {
  /** The id. */
  id: number;
  /** The type. */
  type: "platform" | "partner" | "account";
  /** The name. */
  name: string;
  /** Id of the partner. */
  partner_id: number | null;
};

/** Branding of the pages. */
export type Theme = {
  /** Primary colour of the pages. */
  primary_color: string;
  /** URL of the logo. */
  logo_url: string | null;
};

/** Branding that replaces the platform's own. */
export type WhiteLabel = {
  /** Whether it is enabled. */
  enabled: boolean;
  /** Name shown instead of ReviewRelay. */
  brand_name: string | null;
  /** A domain name. */
  domain: string | null;
};

/** The plan of an account. */
export type Plan = {
  /** The id. */
  id: number;
  /** The name. */
  name: string;
  /** Features of the plan. */
  features: string[];
};

export type SessionContext = {
  user: User;
  company: Company;
  theme: Theme;
  white_label: WhiteLabel;
  plan?: Plan;
};

export type PasswordSet = SessionContext & {
  /** A token. */
  token: string;
  /** `Bearer`. */
  token_type: "Bearer";
  /** Seconds until expiry. */
  expires_in: number;
};

export type SignedIn = PasswordSet & {
  /** Number of stores that the user may see. */
  location_count: number;
};

/** An email address. */
export type EmailAddress = string;

export type VerifiedToken = SessionContext & {
  /** The impersonator; absent without impersonation. */
  impersonation?: {
    /** The user who impersonates. */
    impersonator: {
      /** The id. */
      id: number;
      /** An email address. */
      email: string;
      /** The name. */
      name: string;
      /** Id of the company. */
      company_id: number;
    };
  };
};

/** Fields of every page of a list. */
export type Page = {
  /** Cursor of the next page; null on the last one. */
  next_cursor: string | null;
};

/** Scope of a token. */
export type Scope = "*" | "reviews:read" | "reviews:write" | "webhooks:read" | "webhooks:write" | "clients:write" | "impersonate";

export type ImpersonationInput = {
  /** Id of the account. */
  account_id: number;
  /** Reason given by the user. */
  reason?: string;
};

export type Impersonation = {
  /** The token to send as `Bearer`. */
  access_token: string;
  /** `Bearer`. */
  token_type: "Bearer";
  /** Seconds until expiry. */
  expires_in: number;
  user: User;
  company: Company;
  /** The account, its owner, on whose behalf the token acts, and the impersonator. */
  acting_as: {
    /** Id of the user. */
    user_id: number;
    /** Id of the account. */
    account_id: number;
    /** Id of the user who impersonated. */
    impersonator_id: number;
  };
};

export type OAuthClient = {
  /** Id of the OAuth client. */
  client_id: string;
  /** The name. */
  name: string;
  /** Allowed redirect URIs. */
  redirect_uris: string[];
  /** Whether the client can keep a secret. */
  confidential: boolean;
  /** Scopes; `*` stands for all. */
  scopes: string[];
  /** OAuth grant types that the client may use. */
  grant_types: string[];
  /** Whether the client belongs to the platform itself. */
  first_party: boolean;
  /** Whether the code flow requires PKCE; `true` by default, and always for a public client. */
  require_pkce: boolean;
  /** Id of the company. */
  company_id: number | null;
  /** Creation time. */
  created_at: string;
  /** Time of the last change. */
  updated_at: string;
};

export type OAuthClientPage = Page & {
  /** Rows of the page. */
  data: OAuthClient[];
};

/** Allowed redirect URIs. */
export type RedirectUris = string[];

/** Grant types that the client may use. */
export type GrantTypes = ("password" | "refresh_token" | "authorization_code")[];

export type OAuthClientInput = {
  /** The name. */
  name: string;
  redirect_uris?: RedirectUris;
  /** Whether the client can keep a secret. */
  confidential?: boolean;
  /** Scopes; `*` stands for all. */
  scopes?: Scope[];
  grant_types?: GrantTypes;
  /** Whether the client belongs to the platform itself. */
  first_party?: boolean;
  /** Whether the code flow requires PKCE; `true` by default, and always for a public client. */
  require_pkce?: boolean;
};

export type OAuthClientWithSecret = OAuthClient & {
  /** Secret of the client; null for a public client. */
  client_secret: string | null;
};

export type OAuthClientUpdate = {
  /** The name. */
  name?: string;
  redirect_uris?: RedirectUris;
  /** Scopes; `*` stands for all. */
  scopes?: Scope[];
  grant_types?: GrantTypes;
  /** Whether the client belongs to the platform itself. */
  first_party?: boolean;
  /** Whether the code flow requires PKCE; `true` by default, and always for a public client. */
  require_pkce?: boolean;
};

export type SsoIdentity = {
  /** The id. */
  id: number;
  /** Id of the connection through which it was linked. */
  connection_id: string;
  /** Issuer of the identity provider. */
  issuer: string;
  /** The `sub` of the user at the provider. */
  subject: string;
  /** Time of the first sign-in with it. */
  linked_at: string;
};

export type SsoIdentityPage = Page & {
  /** Rows of the page. */
  data: SsoIdentity[];
};

/** The name. */
export type DisplayName = string;

export type Account = {
  /** The id. */
  id: number;
  /** The name. */
  name: string;
  /** Whether it is active. */
  is_active: boolean;
  /** Primary colour of the pages. */
  primary_color: string;
  /** URL of the logo. */
  logo_url: string | null;
  /** Whether the company's own users need a second factor. */
  require_second_factor: boolean;
  /** Creation time. */
  created_at: string;
  /** The platform's own id; null for none. */
  external_id: string | null;
  /** Time of the last change. */
  updated_at: string;
  /** Id of the partner. */
  partner_id: number | null;
  /** Name of the partner. */
  partner_name: string | null;
  /** Plan of the account. */
  plan: {
    /** The id. */
    id: number;
    /** The name. */
    name: string;
  };
  /** Ids of the stores that a location user may see. */
  store_ids: number[];
  /** Stores of the account. */
  stores: {
    /** The id. */
    id: number;
    /** The name. */
    name: string;
  }[];
};

export type AccountPage = Page & {
  /** Rows of the page. */
  data: Account[];
};

/** A company. */
export type CompanyName = {
  /** The id. */
  id: number;
  /** The type. */
  type: string;
  /** The name. */
  name: string;
};

export type Store = {
  /** The id. */
  id: number;
  /** The name. */
  name: string;
  /** Id of the account. */
  account_id: number;
  /** Id of the partner. */
  partner_id: number;
  /** The platform's own id; null for none. */
  external_id: string | null;
  /** Time of the last change. */
  updated_at: string;
};

export type StorePage = Page & {
  /** Rows of the page. */
  data: Store[];
};

export type AdminUser = {
  /** The id. */
  id: number;
  /** An email address. */
  email: string;
  /** The name. */
  name: string;
  /** Role of the user. */
  role: string;
  /** Id of the company. */
  company_id: number;
  company: CompanyName;
  /** Ids of the stores that a location user may see. */
  store_ids: number[];
  /** Whether it is active. */
  is_active: boolean;
  /** Whether the user has set a password. */
  has_password: boolean;
  /** End of the sign-in lock. */
  locked_until: string | null;
  /** Creation time. */
  created_at: string;
  /** The platform's own id; null for none. */
  external_id: string | null;
  /** Time of the last change. */
  updated_at: string;
};

export type AdminUserPage = Page & {
  /** Rows of the page. */
  data: AdminUser[];
};

export type AuditEntry = {
  /** The id. */
  id: number;
  /** Time of occurrence. */
  at: string;
  /** Name of the audited action. */
  action: string;
  /** Id of the user who acted. */
  actor_id: number | null;
  /** Name of the user who acted. */
  actor_name: string | null;
  /** Id of the user who impersonated. */
  impersonator_id: number | null;
  /** Name of the user who impersonated. */
  impersonator_name: string | null;
  /** Id of the company. */
  company_id: number | null;
  /** Name of the company. */
  company_name: string | null;
  /** IP address of the request. */
  ip: string | null;
  /** User agent of the request. */
  user_agent: string | null;
  /** Id of the request. */
  request_id: string | null;
  /** Further details of the action. */
  details: Record<string, unknown>;
};

export type AuditEntryPage = Page & {
  /** Rows of the page. */
  data: AuditEntry[];
};

export type TeammateInput = {
  email: EmailAddress;
  name: DisplayName;
  /** Role of the user. */
  role: "partner_owner" | "partner_admin";
};

export type TeamRole = {
  /** Role of the user. */
  role: "partner_owner" | "partner_admin";
};

export type TeamSession = {
  /** The id. */
  id: string;
  /** Method of the sign-in. */
  method: string;
  /** Id of the OAuth client. */
  client_id: string | null;
  /** IP address of the request. */
  ip: string | null;
  /** User agent of the request. */
  user_agent: string | null;
  /** Creation time. */
  created_at: string;
  /** Time of the latest use. */
  last_used_at: string | null;
  /** Expiry time. */
  expires_at: string;
  /** Whether this request uses it. */
  is_current: boolean;
  /** Id of the user. */
  user_id: number;
  /** Name of the user. */
  user_name: string;
};

export type TeamSessionPage = Page & {
  /** Rows of the page. */
  data: TeamSession[];
};

export type TeamToken = {
  /** The id. */
  id: string;
  /** `dashboard_pat`, `api_pat` or `impersonation`, which acts for an account's owner. */
  kind: string;
  /** The name. */
  name: string | null;
  /** Id of the user. */
  user_id: number;
  /** Name of the user. */
  user_name: string;
  /** Scopes; `*` stands for all. */
  scopes: string[];
  /** Creation time. */
  created_at: string;
  /** Expiry time. */
  expires_at: string | null;
  /** Time of the latest use. */
  last_used_at: string | null;
  /** The ten newest pairs of route and address. */
  uses: {
    /** Method and path. */
    route: string;
    /** IP address of the request. */
    ip: string;
    /** Time of the first use from this address. */
    first_used_at: string;
    /** Time of the latest use. */
    last_used_at: string;
  }[];
};

export type TeamTokenPage = Page & {
  /** Rows of the page. */
  data: TeamToken[];
};

export type SecuritySettings = {
  /** Whether the company's own users need a second factor. */
  require_second_factor: boolean;
};

export type SecurityChanges = {
  /** Whether the company's own users need a second factor. */
  require_second_factor: boolean;
};

/** Immediate or batch delivery. */
export type DeliveryKind = "immediate" | "batch";

export type Subscription = {
  /** ULID. */
  id: string;
  /** Name chosen by the partner. */
  label: string;
  /** URL that receives the deliveries. */
  webhook_url: string;
  delivery_kind: DeliveryKind;
  /** Hours between batches. */
  batch_interval_hours: number | null;
  /** Event filter; null for all events. */
  events: string[] | null;
  /** Full or minimal bodies. */
  payload_mode: "full" | "minimal";
  /** Whether the platform sends no mails of its own. */
  suppress_native_notifications: boolean;
  /** Events that wait for a retry of an earlier event. */
  ordering: "subscription" | "review";
  /** Whether deliveries also carry the headers of Standard Webhooks. */
  standard_webhooks: boolean;
  /** False while disabled. */
  is_active: boolean;
  /** Permanent failures in a row. */
  consecutive_failure_count: number;
  /** Time at which it was disabled. */
  disabled_at: string | null;
  /** Reason why it was disabled. */
  disabled_reason: string | null;
  /** The operator's reason; null unless `disabled_reason` is `operator`. */
  disabled_note: string | null;
  /** Id of the test event whose response decides whether the subscription is enabled; null without one. */
  pending_test_event_id: string | null;
  /** Time of the last batch. */
  last_batch_dispatched_at: string | null;
  /** Time of the next batch. */
  next_batch_at: string | null;
  /** The first 8 bytes of the secret's SHA-256. */
  secret_fingerprint: string;
  /** End of the grace period of the previous secret; null without one. */
  previous_secret_expires_at: string | null;
  /** Creation time. */
  created_at: string;
  /** Time of the last change. */
  updated_at: string;
  /** Time of deletion. */
  deleted_at: string | null;
};

export type SubscriptionPage = Page & {
  /** Rows of the page. */
  data: Subscription[];
};

export type EventCatalog = {
  /** The events. */
  events: {
    /** Event value. */
    value: string;
    /** Category of the event. */
    category: string;
    /** Shape of the body: `review` or `site_connection`. */
    envelope: "review" | "site_connection";
    /** Description of the event. */
    description: string;
    /** Whether batch subscriptions deliver it. */
    in_batch: boolean;
    /** Whether an event filter may contain it. */
    subscribable: boolean;
    /** JSON Schema of the full body. */
    schema: Record<string, unknown>;
    /** A full body. */
    example: Record<string, unknown>;
  }[];
  /** Hours between batches. */
  batch_interval_hours: number[];
};

/** Event value. */
export type EventValue = "review_received" | "review_updated" | "review_removed" | "profanity_detected" | "review_flagged" | "flag_status_changed" | "review_assigned" | "note_added" | "response_submitted" | "response_updated" | "response_deleted" | "homeowner_notified_of_response" | "response_post_succeeded" | "response_post_failed" | "review_pull_connected" | "review_pull_disconnected" | "response_post_connected" | "response_post_disconnected" | "webhook.test";

/** ULID; the `X-SVC-Delivery` of every attempt. */
export type EventId = string;

export type Attempt = {
  /** ULID. */
  id: string;
  event_id: EventId;
  /** Event value. */
  event: string;
  /** Number of the attempt, 1 to 4, as in `X-SVC-Attempt`. */
  attempt: number;
  /** Number of the round, from 1. Each redelivery starts another round. */
  round: number;
  /** Position in the order of the subscription. */
  sequence: number;
  /** Start time. */
  started_at: string;
  /** Duration in milliseconds. */
  duration_ms: number;
  /** Result of the attempt. */
  outcome: "delivered" | "retry" | "failed" | "interrupted";
  /** HTTP status of the response; null without one. */
  status_code: number | null;
  /** Cause of the failure: http_status, timeout, dns, connect, tls, blocked_address, … */
  error_code: string | null;
  /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
  tls_reason: string | null;
  /** Exact headers that were sent; null if they cannot be reproduced. */
  request_headers: Record<string, unknown> | null;
  /** The exact text that was sent and signed; null if it cannot be reproduced or was erased. */
  request_body: string | null;
  /** The first 16 bytes of the SHA-256 of the body that was sent, in hex digits; null where the body itself is stored. */
  request_digest: string | null;
  /** The body named a person whose data was erased, so it cannot be shown. */
  request_erased: boolean;
  /** Headers of the response. */
  response_headers: Record<string, unknown> | null;
  /** Beginning of the response body. */
  response_excerpt: string | null;
  /** Whether the response body continues after the excerpt. */
  response_truncated: boolean;
  /** Time of the next attempt. */
  next_attempt_at: string | null;
  /** A process that stopped unexpectedly may have sent the same attempt. */
  possibly_repeated: boolean;
  /** Sent twice because a reused connection closed before the first byte of a response. */
  resent: boolean;
};

export type AttemptPage = Page & {
  /** Rows of the page. */
  data: Attempt[];
};

export type Delivery = {
  event_id: EventId;
  /** Event value. */
  event: string;
  /** Position in the subscription's order. */
  sequence: number;
  /** pending and waiting (for a retry): queued; held: queued while the subscription is disabled. */
  state: "pending" | "waiting" | "held" | "delivered" | "failed" | "skipped";
  /** Creation time. */
  created_at: string;
  /** Time at which it was delivered, failed or skipped. */
  settled_at: string | null;
  /** Attempts of all rounds, oldest first. */
  attempts: Attempt[];
};

export type AttemptSummary = {
  /** ULID. */
  id: string;
  event_id: EventId;
  /** Event value. */
  event: string;
  /** Number of the attempt, 1 to 4, as in `X-SVC-Attempt`. */
  attempt: number;
  /** Number of the round, from 1. Each redelivery starts another round. */
  round: number;
  /** Position in the order of the subscription. */
  sequence: number;
  /** Start time. */
  started_at: string;
  /** Duration in milliseconds. */
  duration_ms: number;
  /** Result of the attempt. */
  outcome: "delivered" | "retry" | "failed" | "interrupted";
  /** HTTP status of the response; null without one. */
  status_code: number | null;
  /** Cause of the failure: http_status, timeout, dns, connect, tls, blocked_address, … */
  error_code: string | null;
  /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
  tls_reason: string | null;
  /** Time of the next attempt. */
  next_attempt_at: string | null;
  /** A process that stopped unexpectedly may have sent the same attempt. */
  possibly_repeated: boolean;
  /** Sent twice because a reused connection closed before the first byte of a response. */
  resent: boolean;
};

export type EventMessage = {
  /** Id of the event, as in `X-SVC-Delivery`. */
  event_id: string;
  /** Event value. */
  event: string;
  /** Sequence number of its last round. */
  sequence: number;
  /** State of the delivery's last round. */
  state: "pending" | "waiting" | "held" | "delivered" | "failed" | "skipped";
  /** Creation time. */
  created_at: string;
  /** Time at which it was delivered, failed or skipped. */
  settled_at: string | null;
  /** Id of the review. */
  review_id: number | null;
  /** Id of the review at its site. */
  external_review_id: string | null;
  /** Rating, 1 to 5 stars. */
  rate: number | null;
  /** Id of the store. */
  store_id: number | null;
  /** Name of the store. */
  store_name: string | null;
  /** Number of events, of the first 10,000, that wait behind it in its lane; null unless it waits for a retry. */
  waiting_behind: number | null;
  /** The newest 20 attempts, oldest first. */
  attempts: AttemptSummary[];
};

export type EventMessagePage = Page & {
  /** Rows of the page. */
  data: EventMessage[];
};

/** Durations in milliseconds. */
export type Latency = {
  /** 50th percentile. */
  p50: number | null;
  /** 95th percentile. */
  p95: number | null;
  /** 99th percentile. */
  p99: number | null;
};

export type Health = {
  /** How well deliveries work; null while the subscription is disabled. */
  condition: "healthy" | "degraded" | "failing" | null;
  /** Queued events. Exact up to 10,000; above that each further sequence number counts as an event. */
  pending: number;
  /** Queued events while the subscription is disabled. */
  held: number;
  /** Age of the first queued event in seconds. */
  oldest_pending_age_s: number | null;
  /** The event that waits for a retry and blocks later events. */
  blocked_by: string | null;
  /** Time at which that event began to block the queue. */
  blocked_since: string | null;
  /** Failed attempts of that event in this round; 0 without one. */
  blocked_attempts: number;
  /** Time of the latest attempt answered 2xx. */
  last_success_at: string | null;
  /** The share of attempts of the last hour answered 2xx; null without attempts. */
  success_rate_1h: number | null;
  /** The share of attempts answered 2xx; null without attempts. */
  success_rate_24h: number | null;
  latency_ms_24h: Latency;
  /** Events dropped because they were held for longer than the retention time. */
  expired_24h: number;
  /** Lanes that are quarantined because of a problem in this service. */
  quarantined: {
    /** Reason given by the user. */
    reason: "history_missing" | "unreadable" | "unrecordable" | "secret_unreadable" | "locked";
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id: string | null;
    /** Position in the subscription's order. */
    sequence: number | null;
    /** Id of the review. */
    review_id: number | null;
    /** Start of the range, inclusive. */
    since: string;
  }[];
  /** Start of an outage in which the service cannot reach receivers; null without one. Attempts wait and do not count as failures. */
  outage_since: string | null;
  /** First of the current consecutive permanent failures. */
  first_failure: {
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id: string;
    /** Time of occurrence. */
    at: string;
    /** HTTP status of the response; null without one. */
    status_code: number | null;
    /** Error code; null without an error. */
    error_code: string | null;
    /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
    tls_reason: string | null;
  } | null;
};

export type Incident = {
  /** Time of the first failed attempt; null without an incident. */
  since: string | null;
  /** Result of the last failed attempt. */
  last_answer: {
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id: string;
    /** Time of occurrence. */
    at: string;
    /** HTTP status of the response; null without one. */
    status_code: number | null;
    /** Error code; null without an error. */
    error_code: string | null;
    /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
    tls_reason: string | null;
    /** Beginning of the response body. */
    response_excerpt: string | null;
  } | null;
  /** Seconds per count. */
  step: number;
  /** Causes of the last 1,000 failed attempts since then. */
  causes: {
    /** HTTP status of the response; null without one. */
    status_code: number | null;
    /** Error code; null without an error. */
    error_code: string | null;
    /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
    tls_reason: string | null;
    /** The attempts, oldest first; in statistics, their number. */
    attempts: number;
    /** Time of the first occurrence. */
    first_at: string;
    /** Time of the latest occurrence. */
    last_at: string;
    /** Failed attempts per step since `since`. */
    counts: number[];
  }[];
  /** Alerts raised in this incident. */
  alerts: {
    /** Kind of alert. */
    kind: "head_retrying" | "oldest_waiting" | "failures_5" | "failures_10" | "failures_18" | "disabled" | "recovered";
    /** Time at which the alert was raised. */
    raised_at: string;
  }[];
};

export type IncidentHistory = {
  /** The newest first; `status_code` and `error_code` are the most frequent. */
  incidents: {
    /** The `incident_id` of its first alert. */
    id: string;
    /** Time of the first failed attempt. */
    began_at: string;
    /** Time of the end. */
    ended_at: string;
    /** How the incident ended: `enabled` if the subscription was enabled and no 2xx followed. */
    ended_by: "recovered" | "enabled";
    /** Time at which the subscription was disabled; null if it was not. */
    disabled_at: string | null;
    /** Failed attempts, of which 1,000 of each outcome are counted. */
    failed_attempts: number;
    /** HTTP status of the response; null without one. */
    status_code: number | null;
    /** Error code; null without an error. */
    error_code: string | null;
    /** Reason of a TLS failure: expired, wrong_name, chain_incomplete, …; null for other codes. */
    tls_reason: string | null;
  }[];
};

export type Stats = {
  /** Start of the range, inclusive. */
  since: string;
  /** End of the range, exclusive. */
  until: string;
  /** Length of a step in seconds. */
  step: number;
  /** One point per step. */
  points: {
    /** Time of occurrence. */
    at: string;
    /** Attempts answered 2xx. */
    successes: number;
    /** Attempts not answered 2xx. */
    failures: number;
    latency_ms: Latency;
    /** The most events that were queued at once, as sampled. */
    backlog: number;
    /** Attempts by event, with `by=event`; many are sampled. */
    events?: Record<string, unknown>;
  }[];
};

/** Hours between batch dispatches. */
export type BatchInterval = 1 | 2 | 4 | 6 | 8 | 12 | 24;

/** The events to deliver; null for all. Has no effect on batch. */
export type EventFilter = ("review_received" | "review_updated" | "review_removed" | "profanity_detected" | "review_flagged" | "flag_status_changed" | "review_assigned" | "note_added" | "response_submitted" | "response_updated" | "response_deleted" | "homeowner_notified_of_response" | "response_post_succeeded" | "response_post_failed" | "review_pull_connected" | "review_pull_disconnected" | "response_post_connected" | "response_post_disconnected")[] | null;

/** Whether a retry blocks all later events, or only those of the same review. */
export type Ordering = "subscription" | "review";

export type SubscriptionInput = {
  /** Name chosen by the partner. */
  label: string;
  /** URL that receives the deliveries. */
  webhook_url: string;
  delivery_kind: DeliveryKind;
  /** Hours between batches; for batch only. */
  batch_interval_hours?: BatchInterval | null;
  events?: EventFilter;
  /** Full or minimal bodies; always `full` on batch. */
  payload_mode?: "full" | "minimal";
  /** Omits the platform's own mails about review actions; false on batch. */
  suppress_native_notifications?: boolean;
  ordering?: Ordering;
  /** Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks. */
  standard_webhooks?: boolean;
};

export type SubscriptionWithSecret = Subscription & {
  /** The key of the signatures. Use the text itself as the key; do not decode its digits. */
  secret: string;
  /** The same key in the form of Standard Webhooks: `whsec_` and base64. Null without `standard_webhooks`. */
  standard_webhooks_secret: string | null;
};

export type SubscriptionUpdate = {
  /** Name chosen by the partner. */
  label?: string;
  /** URL that receives the deliveries. */
  webhook_url?: string;
  delivery_kind?: DeliveryKind;
  /** Hours between batches; for batch only. */
  batch_interval_hours?: BatchInterval | null;
  events?: EventFilter;
  /** Full or minimal bodies; always `full` on batch. */
  payload_mode?: "full" | "minimal";
  /** Omits the platform's own mails about review actions; false on batch. */
  suppress_native_notifications?: boolean;
  ordering?: Ordering;
  /** Adds `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks. */
  standard_webhooks?: boolean;
};

export type SecretRotation = {
  /** Hours in which deliveries also have `X-SVC-Signature-Previous`, which is computed with the old secret. */
  grace_period_hours?: number;
};

export type Secret = {
  /** The key of the signatures. Use the text itself as the key; do not decode its digits. */
  secret: string;
  /** The first 8 bytes of the secret's SHA-256. */
  secret_fingerprint: string;
};

export type SubscriptionSecret = Secret & {
  /** The same key in the form of Standard Webhooks: `whsec_` and base64. Null without `standard_webhooks`. */
  standard_webhooks_secret: string | null;
};

export type Test = {
  event?: EventValue;
};

export type QueuedEvent = {
  event_id: EventId;
};

export type Enabling = {
  /** Whether events that were recorded while it was disabled are delivered or skipped. */
  held?: "deliver" | "skip";
  /** Sends a test event first. The subscription is enabled only if the response is a 2xx. */
  test?: boolean;
};

export type EnabledSubscription = Subscription & {
  /** Id of the test event, if `test` was set. */
  test_event_id?: string;
};

export type Redelivery = {
  /** The ids of the events, in the order of delivery. */
  event_ids: string[];
};

export type RedeliveredEvents = {
  /** Number of events that this call queued. */
  queued: number;
};

export type Recovery = {
  /** Start of the range, inclusive. */
  since: string;
  /** End of the range, exclusive. */
  until?: string;
  /** Whether to only count the events and queue none. */
  dry_run?: boolean;
};

export type RecoveredEvents = {
  /** Number of events that this call queued, or with `dry_run` would queue. */
  queued: number;
};

export type AlertSettings = {
  /** Recipients of mails; null for the partner's owners. Each address must be confirmed with a mailed link. */
  recipients: string[] | null;
  /** Kinds of alerts to send, by mail and by POST; `disabled` is always sent. */
  kinds: ("head_retrying" | "oldest_waiting" | "failures_5" | "failures_10" | "failures_18" | "disabled" | "recovered")[];
  /** Minutes that an event may wait before `oldest_waiting` is raised. */
  oldest_waiting_minutes: number;
  /** Minimum minutes between two mails. Mails about a disabled subscription are sent immediately. */
  digest_minutes: number;
  /** URL that receives alerts. */
  webhook_url: string | null;
  /** Recipients that have not confirmed and get no mails yet. */
  unconfirmed_recipients: string[];
  /** The first 8 bytes of the secret's SHA-256. */
  secret_fingerprint: string | null;
  /** Time of the last change. */
  updated_at: string | null;
};

export type AlertSettingsUpdate = {
  /** Recipients of mails; null for the partner's owners. Each address must be confirmed with a mailed link. */
  recipients?: string[] | null;
  /** Kinds of alerts to send, by mail and by POST; `disabled` is always sent. */
  kinds?: ("head_retrying" | "oldest_waiting" | "failures_5" | "failures_10" | "failures_18" | "disabled" | "recovered")[];
  /** Minutes that an event may wait before `oldest_waiting` is raised. */
  oldest_waiting_minutes?: number;
  /** Minimum minutes between two mails. Mails about a disabled subscription are sent immediately. */
  digest_minutes?: number;
  /** URL that receives alerts. */
  webhook_url?: string | null;
};

export type AlertSettingsWithSecret = AlertSettings & {
  /** Signing secret, if this request created one. */
  secret: string | null;
};

export type RecipientCode = {
  /** The one-time code. */
  code: string;
};

export type ConfirmedRecipient = {
  /** The address that now receives the alerts. */
  email: string;
};

export type PortalLinkInput = {
  /** Pages: `webhooks`, or `webhooks/{id}` for one subscription. */
  pages: string[];
  /** Access; `read` by default. */
  access?: "read" | "write";
  /** Colour scheme; the browser's by default. */
  theme?: "light" | "dark";
  /** Seconds in which the link works; 300 by default. */
  ttl_s?: number;
};

export type PortalLink = {
  /** The link. */
  url: string;
  /** Expiry time. */
  expires_at: string;
};

export type Embedding = {
  /** Origins that may frame the portal. */
  origins: string[];
};

export type ResponseInput = {
  /** Text of the response or note. */
  body: string;
};

export type ReviewResponse = {
  /** Text of the response or note. */
  body: string;
  /** Id of the user. */
  user_id: number | null;
  /** Time of the response. */
  responded_at: string | null;
};

export type ReviewFlag = {
  /** Status of the flag. */
  status: string;
  /** Reason given by the user. */
  reason: string | null;
};

export type Review = {
  /** The id. */
  id: number;
  /** Id of the review at its site. */
  external_review_id: string;
  /** The platform's own id; null without one. */
  external_id: string | null;
  /** Id of the store. */
  store_id: number;
  /** Id of the store's connection to the review site. */
  store_review_site_id: number;
  /** Id of the review site. */
  review_site_id: number;
  /** Slug of the review site. */
  source_platform: string;
  /** Rating, 1 to 5 stars. */
  rate: number;
  /** Name of the reviewer, if known. */
  reviewer: string | null;
  /** Text of the review. */
  content: string;
  /** Time at which the review was written. */
  reviewed_at: string;
  /** Time at which the review disappeared from its site; null if it has not. */
  removed_at: string | null;
  /** The account's response. */
  response: ReviewResponse | null;
  /** Latest flag of the review. */
  flag: ReviewFlag | null;
  /** Id of the user to whom the review is assigned. */
  assigned_user_id: number | null;
  /** Creation time. */
  created_at: string;
  /** Time of the last change. */
  updated_at: string;
};

export type FlagInput = {
  /** Reason given by the user. */
  reason: string;
};

export type FlagStatus = {
  /** Status of the flag. */
  status: "under_review" | "accepted" | "rejected" | "withdrawn";
};

export type Assignment = {
  /** Id of the user. */
  user_id: number;
};

export type NoteInput = {
  /** Text of the response or note. */
  body: string;
};

export type ReviewPage = Page & {
  /** Rows of the page. */
  data: Review[];
};

/** The user who acted, or the review site as `system`. */
export type EventActor = {
  /** The type. */
  type: "user" | "system";
  /** The id. */
  id: number | null;
  /** The name. */
  name: string;
};

export type ReviewWithHistory = Review & {
  /** Recorded actions, oldest first. */
  history: {
    /** The id. */
    id: number;
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id: string;
    /** Event value. */
    event: string;
    actor: EventActor;
    /** Data specific to the event. */
    metadata: Record<string, unknown>;
    /** Time of occurrence. */
    occurred_at: string;
  }[];
};

/** `pull` collects reviews, `post` posts responses. */
export type Axis = {
  /** Whether the connection works. */
  connected: boolean;
  /** Error code; null without an error. */
  error_code: string | null;
  /** Time of the last change; null if it never changed. */
  since: string | null;
};

export type StoreReviewSite = {
  /** The id. */
  id: number;
  /** Id of the store. */
  store_id: number;
  /** Name of the store. */
  store_name: string;
  /** Id of the review site. */
  review_site_id: number;
  /** Slug of the review site. */
  provider: string;
  /** The name. */
  name: string;
  pull: Axis;
  post: Axis;
};

export type StoreReviewSitePage = Page & {
  /** Rows of the page. */
  data: StoreReviewSite[];
};

export type Colleague = {
  /** The id. */
  id: number;
  /** An email address. */
  email: string;
  /** The name. */
  name: string;
  /** Role of the user. */
  role: string;
  /** Ids of the stores that a location user may see. */
  store_ids: number[] | null;
};

export type ColleaguePage = Page & {
  /** Rows of the page. */
  data: Colleague[];
};

export type PartnerReview = Review & {
  /** Id of the account. */
  account_id: number;
};

export type PartnerReviewPage = Page & {
  /** Rows of the page. */
  data: PartnerReview[];
};

export type PartnerReviewWithHistory = PartnerReview & {
  /** Recorded actions, oldest first. */
  history: {
    /** The id. */
    id: number;
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id: string;
    /** Event value. */
    event: string;
    actor: EventActor;
    /** Data specific to the event. */
    metadata: Record<string, unknown>;
    /** Time of occurrence. */
    occurred_at: string;
  }[];
};

/** The review at the time of the event. */
export type EventReview = {
  /** The id. */
  id: number;
  /** Id of the review at its site. */
  external_review_id: string;
  /** Id of the store. */
  store_id: number;
  /** Id of the review site. */
  review_site_id: number;
  /** Slug of the review site. */
  source_platform: string;
  /** Rating, 1 to 5 stars. */
  rate: number;
  /** Name of the reviewer, if known. */
  reviewer: string | null;
};

export type HistoryRow = {
  /** The id. */
  id: number;
  /** Id of the event, as in `X-SVC-Delivery`. */
  event_id: string;
  /** Event value. */
  event: string;
  /** Id of the account. */
  account_id: number;
  /** Id of the store. */
  store_id: number;
  /** Id of the store's connection to the review site. */
  store_review_site_id: number;
  /** Id of the review. */
  review_id: number | null;
  actor: EventActor;
  /** The review at the time of the event; null for a site-connection event. */
  review: EventReview | null;
  /** `store` and `review_site` of a site-connection event; null for others. */
  site: Record<string, unknown> | null;
  /** Data specific to the event. */
  metadata: Record<string, unknown>;
  /** Whether an import created it; no webhook was sent. */
  is_imported: boolean;
  /** Time of occurrence. */
  occurred_at: string;
  /** Time at which it was recorded. */
  recorded_at: string;
};

export type HistoryRowPage = Page & {
  /** Rows of the page. */
  data: HistoryRow[];
};

/** The partner that receives the event. */
export type EventPartner = {
  /** The id. */
  id: number;
};

/** Fields that all review events share. */
export type ReviewEventBody = {
  event_id: EventId;
  /** Time of occurrence. */
  occurred_at: string;
  /** Time of this attempt. */
  delivered_at: string;
  partner: EventPartner;
  actor: EventActor;
  review: EventReview;
};

/** Metadata of a test event. */
export type TestMetadata = {
  /** Always true. */
  test: boolean;
};

/** A review site reported a new review. */
export type ReviewReceivedEvent = ReviewEventBody & {
  /** Event value. */
  event: "review_received";
  /** Data specific to the event. */
  metadata: {
    /** Text of the review. */
    content: string;
    /** Time at which the review was written. */
    reviewed_at: string;
  } | TestMetadata;
};

/** The reviewer changed the rating or the text of a review. */
export type ReviewUpdatedEvent = ReviewEventBody & {
  /** Event value. */
  event: "review_updated";
  /** Data specific to the event. */
  metadata: {
    /** Names of the changed fields: rate, reviewer, content, reviewed_at. */
    changed: string[];
    /** Text of the review. */
    content: string;
    /** Time at which the review was written. */
    reviewed_at: string;
    /** Whether the review had been removed before. */
    restored: boolean;
  } | TestMetadata;
};

/** A review disappeared from its site. */
export type ReviewRemovedEvent = ReviewEventBody & {
  /** Event value. */
  event: "review_removed";
  /** Data specific to the event. */
  metadata: Record<string, unknown> | TestMetadata;
};

/** A new or changed review contains profanity. */
export type ProfanityDetectedEvent = ReviewEventBody & {
  /** Event value. */
  event: "profanity_detected";
  /** Data specific to the event. */
  metadata: {
    /** Profane words that an earlier version did not contain. */
    words: string[];
  } | TestMetadata;
};

/** The account flagged a review. */
export type ReviewFlaggedEvent = ReviewEventBody & {
  /** Event value. */
  event: "review_flagged";
  /** Data specific to the event. */
  metadata: {
    /** Reason given by the user. */
    reason: string;
  } | TestMetadata;
};

/** The status of a review's flag changed. */
export type FlagStatusChangedEvent = ReviewEventBody & {
  /** Event value. */
  event: "flag_status_changed";
  /** Data specific to the event. */
  metadata: {
    /** Previous status. */
    from: "open" | "under_review" | "accepted" | "rejected" | "withdrawn";
    /** New status. */
    to: "open" | "under_review" | "accepted" | "rejected" | "withdrawn";
    /** Result of the platform's own mail. */
    native_email: "queued" | "suppressed" | "no_address";
  } | TestMetadata;
};

/** A review was assigned to a user. */
export type ReviewAssignedEvent = ReviewEventBody & {
  /** Event value. */
  event: "review_assigned";
  /** Data specific to the event. */
  metadata: {
    /** Id of the user. */
    user_id: number;
  } | TestMetadata;
};

/** A user added an internal note to a review. */
export type NoteAddedEvent = ReviewEventBody & {
  /** Event value. */
  event: "note_added";
  /** Data specific to the event. */
  metadata: {
    /** Text of the response or note. */
    body: string;
  } | TestMetadata;
};

/** The account submitted its first response to a review. */
export type ResponseSubmittedEvent = ReviewEventBody & {
  /** Event value. */
  event: "response_submitted";
  /** Data specific to the event. */
  metadata: {
    /** Text of the response or note. */
    body: string;
  } | TestMetadata;
};

/** The account changed its response to a review. */
export type ResponseUpdatedEvent = ReviewEventBody & {
  /** Event value. */
  event: "response_updated";
  /** Data specific to the event. */
  metadata: {
    /** Text of the response or note. */
    body: string;
  } | TestMetadata;
};

/** The account deleted its response to a review. */
export type ResponseDeletedEvent = ReviewEventBody & {
  /** Event value. */
  event: "response_deleted";
  /** Data specific to the event. */
  metadata: Record<string, unknown> | TestMetadata;
};

/** A posted response is announced to the reviewer by mail; metadata.native_email has the result of the mail. */
export type HomeownerNotifiedOfResponseEvent = ReviewEventBody & {
  /** Event value. */
  event: "homeowner_notified_of_response";
  /** Data specific to the event. */
  metadata: {
    /** Result of the platform's own mail. */
    native_email: "queued" | "suppressed" | "no_address";
  } | TestMetadata;
};

/** The store. */
export type EventStore = {
  /** The id. */
  id: number;
};

/** The store's connection to the review site. */
export type EventReviewSite = {
  /** Id of the store's connection to the review site. */
  store_review_site_id: number;
  /** Id of the review site. */
  review_site_id: number;
  /** The name. */
  name: string;
  /** Status of the event's axis. */
  connection_status: "connected" | "disconnected";
  /** Error code; null if connected. */
  disconnect_reason: string | null;
};

/** Fields that all site-connection events share. */
export type SiteEventBody = {
  event_id: EventId;
  /** Time of occurrence. */
  occurred_at: string;
  /** Time of this attempt. */
  delivered_at: string;
  partner: EventPartner;
  store: EventStore;
  review_site: EventReviewSite;
  /** Error code; null without an error. */
  error_code: string | null;
  /** Explanation for end users; null if connected. */
  reason: string | null;
};

/** The review site published a response, or failed to. */
export type PostingEvent = SiteEventBody & {
  /** Event value. */
  event: "response_post_succeeded" | "response_post_failed";
  /** `pull` collects reviews, `post` posts responses. */
  axis: "post";
  /** Id of the review. */
  review_id: number;
  /** Id of the row in the review history. */
  review_history_id: number;
};

/** An axis of a review site was connected or disconnected. */
export type ConnectionEvent = SiteEventBody & {
  /** Event value. */
  event: "review_pull_connected" | "review_pull_disconnected" | "response_post_connected" | "response_post_disconnected";
  /** `pull` collects reviews, `post` posts responses. */
  axis: "pull" | "post";
};

/** A test that the partner requested; no filter applies to it. */
export type WebhookTestEvent = ReviewEventBody & {
  /** Event value. */
  event: "webhook.test";
  metadata: TestMetadata;
};

/** Full body of an event. */
export type Event = ReviewReceivedEvent | ReviewUpdatedEvent | ReviewRemovedEvent | ProfanityDetectedEvent | ReviewFlaggedEvent | FlagStatusChangedEvent | ReviewAssignedEvent | NoteAddedEvent | ResponseSubmittedEvent | ResponseUpdatedEvent | ResponseDeletedEvent | HomeownerNotifiedOfResponseEvent | PostingEvent | ConnectionEvent | WebhookTestEvent;

/** The review. */
export type EventReviewId = {
  /** The id. */
  id: number;
};

/** Names the review to fetch again. */
export type MinimalReviewEvent = {
  /** Event value. */
  event: "review_received" | "review_updated" | "review_removed" | "profanity_detected" | "review_flagged" | "flag_status_changed" | "review_assigned" | "note_added" | "response_submitted" | "response_updated" | "response_deleted" | "homeowner_notified_of_response" | "webhook.test";
  event_id: EventId;
  /** Time of occurrence. */
  occurred_at: string;
  partner: EventPartner;
  review: EventReviewId;
  /** Id of the row in the review history. */
  review_history_id: number;
};

/** The store's connection to the review site. */
export type EventReviewSiteId = {
  /** Id of the store's connection to the review site. */
  store_review_site_id: number;
};

/** Names the connection, and the review of a posted response. `GET /partner/review-history?after=` with `review_history_id` minus 1 and `limit=1` returns the event. */
export type MinimalSiteEvent = {
  /** Event value. */
  event: "response_post_succeeded" | "response_post_failed" | "review_pull_connected" | "review_pull_disconnected" | "response_post_connected" | "response_post_disconnected";
  event_id: EventId;
  /** Time of occurrence. */
  occurred_at: string;
  partner: EventPartner;
  store: EventStore;
  review_site: EventReviewSiteId;
  /** `pull` collects reviews, `post` posts responses. */
  axis: "pull" | "post";
  review?: EventReviewId;
  /** Id of the row in the review history. */
  review_history_id: number;
};

/** Minimal body of an event. */
export type MinimalEvent = MinimalReviewEvent | MinimalSiteEvent;

/** One method for each operation that partners and accounts use. */
export abstract class Operations {
  protected abstract send<T>(request: Request): Promise<T>;
  protected abstract pages<T>(request: Request): Pages<T>;

  /** Sign in with email and password. Returns a token for one day. Five wrong passwords temporarily lock the email. */
  signIn(body: Login, options: RequestOptions = {}): Promise<SignedIn> {
    return this.send({ method: "POST", path: `/api/v1/login`, body, options });
  }

  /** Show the user and company of the token. Returns current data, not the data at the time of issue. */
  verifyToken(options: RequestOptions = {}): Promise<VerifiedToken> {
    return this.send({ method: "GET", path: `/api/v1/verify-token`, options });
  }

  /** Issue a token that acts as the owner of an account. For an account of the partner. The audit log names both users. */
  impersonateAccountOwner(body: ImpersonationInput, options: RequestOptions = {}): Promise<Impersonation> {
    return this.send({ method: "POST", path: `/api/v1/partner/account-owner/token`, body, isKeyed: true, options });
  }

  /** List OAuth clients of the partner. Newest first. */
  listOAuthClientsOfPartner(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<OAuthClient> {
    return this.pages({ method: "GET", path: `/api/v1/partner/oauth-clients`, query, options });
  }

  /** Create an OAuth client of the partner. The secret is shown here once and cannot be retrieved later. */
  createOAuthClientOfPartner(body: OAuthClientInput, options: RequestOptions = {}): Promise<OAuthClientWithSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/oauth-clients`, body, isKeyed: true, options });
  }

  /** Get an OAuth client of the partner. The secret is not returned. */
  getOAuthClientOfPartner(id: string | number, options: RequestOptions = {}): Promise<OAuthClient> {
    return this.send({ method: "GET", path: `/api/v1/partner/oauth-clients/${encodeURIComponent(id)}`, options });
  }

  /** Update an OAuth client of the partner. Send only the fields to change. */
  updateOAuthClientOfPartner(id: string | number, body: OAuthClientUpdate, options: RequestOptions = {}): Promise<OAuthClient> {
    return this.send({ method: "POST", path: `/api/v1/partner/oauth-clients/${encodeURIComponent(id)}`, body, options });
  }

  /** Delete an OAuth client of the partner. Its tokens stop working immediately. */
  deleteOAuthClientOfPartner(id: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/oauth-clients/${encodeURIComponent(id)}`, options });
  }

  /** Rotate the secret of an OAuth client of the partner. The old secret stops working immediately. */
  rotateSecretOfOAuthClientOfPartner(id: string | number, options: RequestOptions = {}): Promise<OAuthClientWithSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/oauth-clients/${encodeURIComponent(id)}/secret`, options });
  }

  /** List the identities of a partner's user at identity providers, newest first. The user signs in with each of them by single sign-on. */
  listTeammateIdentities(id: string | number, query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<SsoIdentity> {
    return this.pages({ method: "GET", path: `/api/v1/partner/users/${encodeURIComponent(id)}/identities`, query, options });
  }

  /** Unlink a partner's user from an identity. Ends the user's sessions from single sign-on. The next sign-in with a verified address links an identity again. */
  unlinkTeammateIdentity(id: string | number, identityId: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/users/${encodeURIComponent(id)}/identities/${encodeURIComponent(identityId)}`, options });
  }

  /** List the partner's own users, newest first. Excludes the users of its accounts. */
  listTeam(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Whether it is active. */
    is_active?: "true" | "false";
  } = {}, options: RequestOptions = {}): Pages<AdminUser> {
    return this.pages({ method: "GET", path: `/api/v1/partner/users`, query, options });
  }

  /** Invite a user to the partner. The mail has a link to a password form or to single sign-on. */
  inviteTeammate(body: TeammateInput, options: RequestOptions = {}): Promise<AdminUser> {
    return this.send({ method: "POST", path: `/api/v1/partner/users`, body, isKeyed: true, options });
  }

  /** Change the role of a user of the partner. The new role applies from the next request on. */
  setTeamRole(id: string | number, body: TeamRole, options: RequestOptions = {}): Promise<AdminUser> {
    return this.send({ method: "POST", path: `/api/v1/partner/users/${encodeURIComponent(id)}/role`, body, options });
  }

  /** Send another invitation. Earlier links stop working. */
  inviteTeammateAgain(id: string | number, options: RequestOptions = {}): Promise<AdminUser> {
    return this.send({ method: "POST", path: `/api/v1/partner/users/${encodeURIComponent(id)}/invite`, options });
  }

  /** Deactivate a user of the partner. Revokes all tokens of the user immediately. */
  deactivateTeammate(id: string | number, options: RequestOptions = {}): Promise<AdminUser> {
    return this.send({ method: "POST", path: `/api/v1/partner/users/${encodeURIComponent(id)}/deactivate`, options });
  }

  /** Activate a user of the partner again. Earlier tokens stay revoked. */
  activateTeammate(id: string | number, options: RequestOptions = {}): Promise<AdminUser> {
    return this.send({ method: "POST", path: `/api/v1/partner/users/${encodeURIComponent(id)}/activate`, options });
  }

  /** List the partner's accounts, newest first. Includes their stores. */
  listOwnAccounts(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** The name. */
    name?: DisplayName;
    /** Whether it is active. */
    is_active?: "true" | "false";
    /** updated_since */
    updated_since?: string;
  } = {}, options: RequestOptions = {}): Pages<Account> {
    return this.pages({ method: "GET", path: `/api/v1/partner/accounts`, query, options });
  }

  /** List the partner's stores, newest first. `account_id` restricts the list to one account. */
  listOwnStores(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Id of the account. */
    account_id?: number;
    /** updated_since */
    updated_since?: string;
  } = {}, options: RequestOptions = {}): Pages<Store> {
    return this.pages({ method: "GET", path: `/api/v1/partner/stores`, query, options });
  }

  /** List the audit log of the partner and its accounts, newest first. `company_id` restricts the list to one company. For a company outside of the partner the list is empty. */
  listOwnAuditLog(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Name of the audited action. */
    action?: string;
    /** Category of the actions. */
    category?: "sign_in" | "tokens" | "webhooks" | "users" | "platform";
    /** Text to search for, regardless of case. A page may have fewer rows than `limit` and still a `next_cursor`. */
    q?: string;
    /** Id of the user who acted. */
    actor_id?: number;
    /** Id of the company. */
    company_id?: number;
    /** Start of the range, inclusive. */
    since?: string;
    /** End of the range, exclusive. */
    until?: string;
  } = {}, options: RequestOptions = {}): Pages<AuditEntry> {
    return this.pages({ method: "GET", path: `/api/v1/partner/audit-log`, query, options });
  }

  /** List the active sign-ins of the partner's users, newest first. Sign-ins that have a valid token. */
  listTeamSessions(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<TeamSession> {
    return this.pages({ method: "GET", path: `/api/v1/partner/sessions`, query, options });
  }

  /** End a sign-in of a user of the partner. Its tokens, and all tokens created with them, stop working immediately. */
  endTeamSession(id: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/sessions/${encodeURIComponent(id)}`, options });
  }

  /** List the tokens of the partner's users, newest first. Lists tokens that do not belong to a sign-in, with their recent uses. */
  listTeamTokens(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<TeamToken> {
    return this.pages({ method: "GET", path: `/api/v1/partner/tokens`, query, options });
  }

  /** Revoke a token of a user of the partner. Owners may revoke all tokens, admins their own. Tokens created with the token are revoked, too. */
  endTeamToken(id: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/tokens/${encodeURIComponent(id)}`, options });
  }

  /** Show the security settings of the partner. Only for its owners. */
  getOwnSecurity(options: RequestOptions = {}): Promise<SecuritySettings> {
    return this.send({ method: "GET", path: `/api/v1/partner/security`, options });
  }

  /** Require a second factor for the users of the partner. Current sessions stay active, but are not fresh. */
  updateOwnSecurity(body: SecurityChanges, options: RequestOptions = {}): Promise<SecuritySettings> {
    return this.send({ method: "PATCH", path: `/api/v1/partner/security`, body, options });
  }

  /** List subscriptions. Newest first, without deleted ones. */
  listSubscriptions(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<Subscription> {
    return this.pages({ method: "GET", path: `/api/v1/partner/webhooks`, query, options });
  }

  /** Create a subscription. A partner has one immediate and one batch subscription. The response has the signing secret. */
  createSubscription(body: SubscriptionInput, options: RequestOptions = {}): Promise<SubscriptionWithSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks`, body, isKeyed: true, options });
  }

  /** List event values and batch intervals. Each event has the JSON Schema of its full body and an example. */
  listEvents(options: RequestOptions = {}): Promise<EventCatalog> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/events`, options });
  }

  /** Get a subscription. The secret is not returned. */
  getSubscription(id: string | number, options: RequestOptions = {}): Promise<Subscription> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}`, options });
  }

  /** Delete a subscription. Queued events are not sent. You can create another subscription of this kind immediately. */
  deleteSubscription(id: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}`, options });
  }

  /** Update a subscription. Send only the fields to change. `delivery_kind` may be sent unchanged. URL, ordering and `standard_webhooks` apply from the next attempt on; filter and payload mode apply to events recorded from now on. Changing the URL requires a fresh session. */
  updateSubscription(id: string | number, body: SubscriptionUpdate, options: RequestOptions = {}): Promise<Subscription> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}`, body, options });
  }

  /** List delivery attempts. Newest first. */
  listAttempts(id: string | number, query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Event value. */
    event?: EventValue;
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id?: string;
    /** Result of the attempt. */
    outcome?: "delivered" | "retry" | "failed" | "interrupted";
    /** Start of the range, inclusive. */
    since?: string;
    /** End of the range, exclusive. */
    until?: string;
  } = {}, options: RequestOptions = {}): Pages<Attempt> {
    return this.pages({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/deliveries`, query, options });
  }

  /** Get one delivery with its attempts. Shows the exact body and headers of each attempt and the beginning of the response. */
  getDelivery(id: string | number, eventId: string | number, options: RequestOptions = {}): Promise<Delivery> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(eventId)}`, options });
  }

  /** List deliveries with their attempts. One row per event, ordered by the newest matching attempt, newest first. A page may have fewer rows than its limit and still a `next_cursor`, because one call reads a limited number of attempts. `q` searches the error code and the beginning of the response. */
  listMessages(id: string | number, query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Id of the review. */
    review_id?: number;
    /** Id of the review at its site. */
    external_review_id?: string;
    /** Event value. */
    event?: "review_received" | "review_updated" | "review_removed" | "profanity_detected" | "review_flagged" | "flag_status_changed" | "review_assigned" | "note_added" | "response_submitted" | "response_updated" | "response_deleted" | "homeowner_notified_of_response" | "response_post_succeeded" | "response_post_failed" | "review_pull_connected" | "review_pull_disconnected" | "response_post_connected" | "response_post_disconnected" | "webhook.test";
    /** Id of the event, as in `X-SVC-Delivery`. */
    event_id?: string;
    /** State of the delivery's last round. */
    state?: "pending" | "waiting" | "held" | "delivered" | "failed" | "skipped";
    /** Result of the attempt. */
    outcome?: "delivered" | "retry" | "failed" | "interrupted" | "not_delivered";
    /** A status code, a class such as `5xx`, or `none` for no response. */
    status?: string;
    /** Text to search for, regardless of case. A page may have fewer rows than `limit` and still a `next_cursor`. */
    q?: string;
    /** Start of the range, inclusive. */
    since?: string;
    /** End of the range, exclusive. */
    until?: string;
  } = {}, options: RequestOptions = {}): Pages<EventMessage> {
    return this.pages({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/messages`, query, options });
  }

  /** Show the health of a subscription. Shows current figures and figures of the last 24 hours. */
  getHealth(id: string | number, options: RequestOptions = {}): Promise<Health> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/health`, options });
  }

  /** Show the current incident: its start, causes and alerts. `since` is null without an incident. */
  getIncident(id: string | number, options: RequestOptions = {}): Promise<Incident> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/incident`, options });
  }

  /** List past incidents. The newest 50 incidents within the retention time, without the current one. */
  listIncidents(id: string | number, options: RequestOptions = {}): Promise<IncidentHistory> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/incidents`, options });
  }

  /** Show statistics of deliveries over time. Returns one point per step and extends the range to whole steps. Default: the last day in steps of an hour. */
  getStats(id: string | number, query: {
    /** Start of the range, inclusive. */
    since?: string;
    /** End of the range, exclusive. */
    until?: string;
    /** Seconds per point. */
    step?: number;
    /** Adds `events` to points. */
    by?: "event";
  } = {}, options: RequestOptions = {}): Promise<Stats> {
    return this.send({ method: "GET", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/stats`, query, options });
  }

  /** Rotate the signing secret. All following attempts are signed with the new secret. Sessions of an operator's portal link are rejected. During a grace period, deliveries also carry `X-SVC-Signature-Previous`, which is computed with the previous secret. */
  rotateSecret(id: string | number, body: SecretRotation = {}, options: RequestOptions = {}): Promise<SubscriptionWithSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/rotate-secret`, body, options });
  }

  /** End the grace period of a rotation. From the next attempt on, deliveries have `X-SVC-Signature` only. */
  endPreviousSecret(id: string | number, options: RequestOptions = {}): Promise<void> {
    return this.send({ method: "DELETE", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/previous-secret`, options });
  }

  /** Show the current secret. Each request is recorded in the audit log. Sessions of an operator's portal link are rejected. */
  showSecret(id: string | number, options: RequestOptions = {}): Promise<SubscriptionSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/secret`, options });
  }

  /** Send a test event. Queues `event` with sample values, or a `webhook.test` if `event` is absent. The test is signed, retried and recorded like other events, is sent independently of them, and has the header `X-SVC-Test: 1`. */
  sendTest(id: string | number, body: Test = {}, options: RequestOptions = {}): Promise<QueuedEvent> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/test`, body, options });
  }

  /** Enable a disabled subscription. Resets the count of failures to 0. Held events are delivered in order, or skipped, as `held` says. With `test`, a test event is sent first: a 2xx response enables the subscription, any other result leaves it disabled. */
  enableSubscription(id: string | number, body: Enabling = {}, options: RequestOptions = {}): Promise<EnabledSubscription> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/enable`, body, options });
  }

  /** Disable a subscription. Nothing is sent until it is enabled. Queued events are held and queued tests are skipped. Raises no alert. */
  disableSubscription(id: string | number, options: RequestOptions = {}): Promise<Subscription> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/disable`, options });
  }

  /** Deliver an event again. Adds the event to the end of the queue, with the same `X-SVC-Delivery`, as a new round of up to four attempts. */
  redeliver(id: string | number, eventId: string | number, options: RequestOptions = {}): Promise<QueuedEvent> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(eventId)}/redeliver`, options });
  }

  /** Deliver several events again. In the order of `event_ids`, each as a new round. Events that are unknown or already queued are ignored. */
  redeliverEvents(id: string | number, body: Redelivery, options: RequestOptions = {}): Promise<RedeliveredEvents> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/redeliver`, body, options });
  }

  /** Queue the undelivered events of a period again. Queues all events that were recorded from `since` to `until` (default: now) and are neither delivered nor queued, in order. A call queues at most 10,000 events; repeat it until it returns 0. With `dry_run` it returns 200 and the number of events that it would queue. */
  recover(id: string | number, body: Recovery, options: RequestOptions = {}): Promise<RecoveredEvents> {
    return this.send({ method: "POST", path: `/api/v1/partner/webhooks/${encodeURIComponent(id)}/recover`, body, options });
  }

  /** Show the alert settings. Returns the defaults until they are changed. */
  getAlerts(options: RequestOptions = {}): Promise<AlertSettings> {
    return this.send({ method: "GET", path: `/api/v1/partner/alerts`, options });
  }

  /** Change the alert settings. Send only the fields to change. The first `webhook_url` creates a secret. Changing `webhook_url` or `recipients` requires a fresh session. */
  updateAlerts(body: AlertSettingsUpdate, options: RequestOptions = {}): Promise<AlertSettingsWithSecret> {
    return this.send({ method: "PATCH", path: `/api/v1/partner/alerts`, body, options });
  }

  /** Rotate the secret of alerts. Takes effect immediately, without a grace period. */
  rotateAlertSecret(options: RequestOptions = {}): Promise<AlertSettingsWithSecret> {
    return this.send({ method: "POST", path: `/api/v1/partner/alerts/rotate-secret`, options });
  }

  /** Show the secret of alerts. Each request is recorded in the audit log. */
  showAlertSecret(options: RequestOptions = {}): Promise<Secret> {
    return this.send({ method: "POST", path: `/api/v1/partner/alerts/secret`, options });
  }

  /** Confirm a recipient of alerts. Requires the code of the mailed link, which is valid for seven days. */
  confirmAlertRecipient(body: RecipientCode, options: RequestOptions = {}): Promise<ConfirmedRecipient> {
    return this.send({ method: "POST", path: `/api/v1/alert-recipients/confirm`, body, options });
  }

  /** Create a portal link. The link opens webhook pages in a window or in a frame. */
  createPortalLink(body: PortalLinkInput, options: RequestOptions = {}): Promise<PortalLink> {
    return this.send({ method: "POST", path: `/api/v1/partner/portal-links`, body, isKeyed: true, options });
  }

  /** List the origins that may frame the portal. Empty by default. */
  getEmbedding(options: RequestOptions = {}): Promise<Embedding> {
    return this.send({ method: "GET", path: `/api/v1/partner/embedding`, options });
  }

  /** Set the origins that may frame the portal. Origins are https, or http on localhost. Changing them requires a fresh session. */
  updateEmbedding(body: Embedding, options: RequestOptions = {}): Promise<Embedding> {
    return this.send({ method: "PATCH", path: `/api/v1/partner/embedding`, body, options });
  }

  /** Submit or change the response to a review. The first call submits the response, a later one changes it; the review site posts it. */
  respond(id: string | number, body: ResponseInput, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "POST", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/response`, body, options });
  }

  /** Delete the response to a review. A response that the review site has already posted is not withdrawn there. */
  deleteResponse(id: string | number, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "DELETE", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/response`, options });
  }

  /** Flag a review for a check. A review has one open flag. */
  flagReview(id: string | number, body: FlagInput, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "POST", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/flag`, body, options });
  }

  /** Move the flag of a review to another status. All but `under_review` close it; the present status again has no effect. */
  moveFlag(id: string | number, body: FlagStatus, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "POST", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/flag-status`, body, options });
  }

  /** Assign a review to a user. The user must be active and see the review's store. Assigning it to the present assignee changes nothing. */
  assignReview(id: string | number, body: Assignment, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "POST", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/assign`, body, options });
  }

  /** Add an internal note to a review. The note is part of the review's history, and of nothing that the reviewer sees. */
  addNote(id: string | number, body: NoteInput, options: RequestOptions = {}): Promise<Review> {
    return this.send({ method: "POST", path: `/api/v1/account/reviews/${encodeURIComponent(id)}/notes`, body, options });
  }

  /** List reviews. Newest first, from the stores of the user. `q` searches review, reviewer and response. */
  listReviews(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Id of the review at its site. */
    external_review_id?: string;
    /** Text to search for, regardless of case. A page may have fewer rows than `limit` and still a `next_cursor`. */
    q?: string;
    /** Id of the store. */
    store_id?: number;
    /** Rating, 1 to 5 stars. */
    rate?: number;
    /** Slug of the review site. */
    source_platform?: string;
    /** Id of the user to whom the review is assigned. */
    assigned_user_id?: number;
    /** Whether the review has a response. */
    responded?: "true" | "false";
    /** Status of the flag. */
    flag_status?: "open" | "under_review" | "accepted" | "rejected" | "withdrawn";
  } = {}, options: RequestOptions = {}): Pages<Review> {
    return this.pages({ method: "GET", path: `/api/v1/account/reviews`, query, options });
  }

  /** Get a review with its history. The history is oldest first. */
  getReview(id: string | number, options: RequestOptions = {}): Promise<ReviewWithHistory> {
    return this.send({ method: "GET", path: `/api/v1/account/reviews/${encodeURIComponent(id)}`, options });
  }

  /** List the stores' review sites and the state of their connections. Lists only the stores of the user. */
  listReviewSites(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
  } = {}, options: RequestOptions = {}): Pages<StoreReviewSite> {
    return this.pages({ method: "GET", path: `/api/v1/account/review-sites`, query, options });
  }

  /** List the account's active users. Reviews can be assigned to these users. */
  listColleagues(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** Id of the store. */
    store_id?: number;
  } = {}, options: RequestOptions = {}): Pages<Colleague> {
    return this.pages({ method: "GET", path: `/api/v1/account/users`, query, options });
  }

  /** List the reviews of all accounts. In the order of `updated_at`. A review that changes during the listing appears again later. */
  listPartnerReviews(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** updated_since */
    updated_since?: string;
  } = {}, options: RequestOptions = {}): Pages<PartnerReview> {
    return this.pages({ method: "GET", path: `/api/v1/partner/reviews`, query, options });
  }

  /** Get a review of one of the accounts, with its history. `id` is the review id in webhooks. The history is oldest first. */
  getPartnerReview(id: string | number, options: RequestOptions = {}): Promise<PartnerReviewWithHistory> {
    return this.send({ method: "GET", path: `/api/v1/partner/reviews/${encodeURIComponent(id)}`, options });
  }

  /** List the history of all accounts, oldest first. In the order of `id`. New rows always come after the rows that were already listed. Store the last `id` and continue with `after` to get every event. */
  listPartnerHistory(query: {
    /** Rows per page; 50 by default. */
    limit?: number;
    /** `next_cursor` of the previous page. */
    cursor?: string;
    /** The `id` of the last row that the caller has. The list continues after that row. */
    after?: number;
    /** Start of the range, inclusive. */
    since?: string;
  } = {}, options: RequestOptions = {}): Pages<HistoryRow> {
    return this.pages({ method: "GET", path: `/api/v1/partner/review-history`, query, options });
  }
}
