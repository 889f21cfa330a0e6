import type { AuditAction } from "./model.ts";

/**
 * Maps an audit action to a phrase that follows the actor's name, such as "signed in". The dashboard shows the phrase,
 * and a search of the audit log covers it.
 */
export const ACTION_WORDS: Readonly<Record<AuditAction, string>> = {
  AUTH_LOGIN: "signed in",
  AUTH_LOGIN_FAILED: "entered a wrong password",
  AUTH_LOCKED: "was locked after wrong passwords",
  AUTH_LOGOUT: "signed out",
  SECOND_FACTOR_ADDED: "added a second factor",
  SECOND_FACTOR_REMOVED: "removed a second factor",
  SECOND_FACTOR_FAILED: "failed a second factor",
  RECOVERY_CODE_USED: "used a recovery code",
  RECOVERY_CODES_MADE: "created new recovery codes",
  SECOND_FACTORS_RESET: "reset the second factors of a user",
  SECOND_FACTOR_POLICY: "changed the second-factor policy",
  CLIENT_AUTH_FAILED: "sent wrong client credentials",
  OTP_FAILED: "entered a wrong code",
  PROVIDER_AUTH_FAILED: "sent a wrong provider signature",
  AUTHZ_DENIED: "was denied access",
  SESSION_REVOKED: "ended a session",
  TOKEN_ISSUED: "received a token",
  TOKEN_REVOKED: "revoked a token",
  TOKEN_VIEWED: "viewed a token",
  TOKEN_USED: "used a token",
  TOKEN_REFRESHED: "refreshed a sign-in",
  REFRESH_REPLAYED: "reused a refresh token",
  CODE_REPLAYED: "reused an authorization code",
  CONSENT_GRANTED: "authorized a client",
  CONSENT_DENIED: "declined to authorize a client",
  CLIENT_CREATED: "created a client",
  CLIENT_UPDATED: "updated a client",
  CLIENT_SECRET_ROTATED: "rotated a client's secret",
  CLIENT_DELETED: "deleted a client",
  PASSWORD_RESET: "set a new password",
  IMPERSONATION_STARTED: "was impersonated",
  SSO_REFUSED: "was denied at single sign-on",
  SSO_LINKED: "linked an identity provider",
  SSO_UNLINKED: "unlinked a user from an identity provider",
  SSO_CONNECTION_CREATED: "created a single sign-on connection",
  SSO_CONNECTION_UPDATED: "updated a single sign-on connection",
  SSO_CONNECTION_DELETED: "deleted a single sign-on connection",
  SSO_DOMAIN_PROVED: "verified a single sign-on domain",
  SSO_USER_CREATED: "was created by single sign-on",
  KEY_ROTATED: "rotated the signing keys",
  KEY_DROPPED: "dropped a signing key",
  USER_CREATED: "created a user",
  USER_UPDATED: "updated a user",
  USER_DELETED: "deleted a user",
  USER_INVITED: "invited a user",
  USER_ROLE_CHANGED: "changed a role",
  USER_DEACTIVATED: "deactivated a user",
  USER_ACTIVATED: "activated a user",
  USER_UNLOCKED: "unlocked a user",
  ERASURE_REQUESTED: "requested an erasure",
  COMPANY_CREATED: "created a company",
  COMPANY_DELETION_REQUESTED: "requested the deletion of a company",
  COMPANY_DELETION_CANCELLED: "cancelled the deletion of a company",
  COMPANY_DEACTIVATED: "deactivated a company",
  COMPANY_ACTIVATED: "activated a company",
  COMPANY_UPDATED: "updated a company",
  COMPANY_DELETED: "deleted a company",
  PLAN_CREATED: "created a plan",
  PLAN_UPDATED: "updated a plan",
  PLAN_DELETED: "deleted a plan",
  STORE_CREATED: "created a store",
  STORE_UPDATED: "updated a store",
  STORE_DELETED: "deleted a store",
  STORE_REVIEW_SITE_CREATED: "connected a store to a review site",
  STORE_REVIEW_SITE_UPDATED: "updated a store's connection",
  STORE_REVIEW_SITE_DELETED: "deleted a store's connection",
  SERVICE_CREATED: "created a service",
  SERVICE_UPDATED: "updated a service",
  SERVICE_DELETED: "deleted a service",
  INTEGRATION_CREATED: "created an integration",
  INTEGRATION_UPDATED: "updated an integration",
  INTEGRATION_DELETED: "deleted an integration",
  DATA_IMPORTED: "imported data",
  DATA_EXPORTED: "exported data",
  AUDIT_EXPORTED: "exported the audit log",
  AUDIT_WEBHOOK_SET: "set the audit webhook",
  AUDIT_WEBHOOK_REMOVED: "removed the audit webhook",
  TENANT_READ: "read a tenant's data",
  INBOX_RETRIED: "retried a rejected action",
  INBOX_DROPPED: "dropped an action of the inbox",
  PROVIDER_CREATED: "created a provider",
  PROVIDER_UPDATED: "updated a provider",
  PROVIDER_DELETED: "deleted a provider",
  PROVIDER_SECRET_ROTATED: "rotated a provider's secret",
  WEBHOOK_CREATED: "created a subscription",
  WEBHOOK_DELETED: "deleted a subscription",
  WEBHOOK_UPDATED: "updated a subscription",
  WEBHOOK_SECRET_ROTATED: "rotated a subscription's secret",
  WEBHOOK_PREVIOUS_SECRET_ENDED: "expired a subscription's previous secret",
  WEBHOOK_SECRET_SHOWN: "viewed a subscription's secret",
  WEBHOOK_ENABLED: "enabled a subscription",
  WEBHOOK_DISABLED: "disabled a subscription",
  WEBHOOK_TESTED: "sent a test event",
  WEBHOOK_CHECKED: "checked an endpoint",
  WEBHOOK_REDELIVERED: "resent an event",
  WEBHOOK_RECOVERED: "recovered events",
  EMBEDDING_UPDATED: "updated the allowed origins",
  PORTAL_LINK_CREATED: "created a portal link",
  PORTAL_LINK_REDEEMED: "opened a portal link",
  ALERTS_UPDATED: "updated the alert settings",
  ALERTS_SECRET_SHOWN: "viewed the alert secret",
  ALERTS_SECRET_ROTATED: "rotated the alert secret",
};

interface AuditedAction {
  readonly action: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Returns the phrase for an audit row. A request to enable a subscription with a test has a separate phrase, because
 * the response to the test decides whether the subscription is enabled.
 */
export function entryWords({ action, details }: AuditedAction): string {
  const isOnTest = action === "WEBHOOK_ENABLED" && details["test"] === true;
  return isOnTest ? "sent a test to enable a subscription" : phraseOf(action);
}

/** Returns the phrase for an audit action. An action that this version does not know is returned unchanged. */
export const phraseOf = (action: string): string => PHRASE_OF_ACTION.get(action) ?? action;

const PHRASE_OF_ACTION: ReadonlyMap<string, string> = new Map(Object.entries(ACTION_WORDS));
