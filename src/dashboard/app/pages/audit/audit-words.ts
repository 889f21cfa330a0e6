import { idOf, instantOf } from "../../ui/format.ts";

export const FILTERS = ["action", "actor", "company", "since", "until"] as const;
type Get = (name: (typeof FILTERS)[number]) => string | undefined;

export type AuditQuery = ReturnType<typeof auditQuery>;

/**
 * Converts the filters in the address to query parameters of the audit log API. Values that the API would
 * reject are left out.
 */
export function auditQuery(get: Get) {
  const action = get("action");
  const actorId = idOf(get("actor"));
  const companyId = idOf(get("company"));
  const since = instantOf(get("since"));
  const until = instantOf(get("until"));
  return {
    ...(action !== undefined && /^[A-Z_]{1,64}$/.test(action) && { action }),
    ...(actorId !== undefined && { actor_id: actorId }),
    ...(companyId !== undefined && { company_id: companyId }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}

/**
 * Maps an audit action to a phrase that follows the actor's name, such as "signed in". A test checks that every
 * action has a phrase.
 */
export const ACTION_WORDS: Readonly<Record<string, string>> = {
  AUTH_LOGIN: "signed in",
  AUTH_LOGIN_FAILED: "gave a wrong password",
  AUTH_LOCKED: "was locked after wrong passwords",
  AUTH_LOGOUT: "signed out",
  SECOND_FACTOR_ADDED: "added a second factor",
  SECOND_FACTOR_REMOVED: "removed a second factor",
  SECOND_FACTOR_FAILED: "gave a wrong proof of a second factor",
  RECOVERY_CODE_USED: "used a recovery code",
  RECOVERY_CODES_MADE: "made new recovery codes",
  SECOND_FACTORS_RESET: "reset the second factors of a user",
  SECOND_FACTOR_POLICY: "changed whether a second factor is required",
  CLIENT_AUTH_FAILED: "gave wrong credentials of a client",
  OTP_FAILED: "gave a wrong code",
  PROVIDER_AUTH_FAILED: "signed wrongly for a provider",
  AUTHZ_DENIED: "was refused",
  SESSION_REVOKED: "ended a session",
  TOKEN_ISSUED: "was given a token",
  TOKEN_REVOKED: "ended a token",
  TOKEN_VIEWED: "looked at a token",
  TOKEN_USED: "used a token",
  TOKEN_REFRESHED: "refreshed a sign-in",
  REFRESH_REPLAYED: "used a refresh token twice",
  CODE_REPLAYED: "used an authorization code twice",
  CONSENT_GRANTED: "let a client act for them",
  CONSENT_DENIED: "refused to let a client act for them",
  CLIENT_CREATED: "created a client",
  CLIENT_UPDATED: "changed a client",
  CLIENT_SECRET_ROTATED: "rotated a client's secret",
  CLIENT_DELETED: "deleted a client",
  PASSWORD_RESET: "set a new password",
  IMPERSONATION_STARTED: "was impersonated",
  SSO_REFUSED: "was refused at single sign-on",
  SSO_LINKED: "signed in at an identity provider for the first time",
  SSO_CONNECTION_CREATED: "created a single sign-on connection",
  SSO_CONNECTION_UPDATED: "changed a single sign-on connection",
  SSO_CONNECTION_DELETED: "deleted a single sign-on connection",
  SSO_DOMAIN_PROVED: "proved a domain for single sign-on",
  SSO_USER_CREATED: "was created by a first single sign-on",
  KEY_ROTATED: "rotated the signing keys",
  KEY_DROPPED: "dropped a signing key",
  USER_CREATED: "created a user",
  USER_UPDATED: "changed a user",
  USER_DELETED: "deleted a user",
  USER_INVITED: "invited a user",
  USER_ROLE_CHANGED: "changed a role",
  USER_DEACTIVATED: "deactivated a user",
  USER_ACTIVATED: "activated a user",
  USER_UNLOCKED: "unlocked a user",
  ERASURE_REQUESTED: "had a person erased",
  COMPANY_CREATED: "created a company",
  COMPANY_DELETION_REQUESTED: "had a company deleted after the waiting time",
  COMPANY_DELETION_CANCELLED: "kept a company that was to be deleted",
  COMPANY_DEACTIVATED: "deactivated a company",
  COMPANY_ACTIVATED: "activated a company",
  COMPANY_UPDATED: "changed a company",
  COMPANY_DELETED: "deleted a company",
  PLAN_CREATED: "created a plan",
  PLAN_UPDATED: "changed a plan",
  PLAN_DELETED: "deleted a plan",
  STORE_CREATED: "created a store",
  STORE_UPDATED: "changed a store",
  STORE_DELETED: "deleted a store",
  STORE_REVIEW_SITE_CREATED: "connected a store to a review site",
  STORE_REVIEW_SITE_UPDATED: "changed a store's connection",
  STORE_REVIEW_SITE_DELETED: "ended a store's connection",
  SERVICE_CREATED: "created a service",
  SERVICE_UPDATED: "changed a service",
  SERVICE_DELETED: "deleted a service",
  DATA_IMPORTED: "imported data",
  DATA_EXPORTED: "exported data",
  AUDIT_EXPORTED: "exported the audit log",
  AUDIT_WEBHOOK_SET: "set the webhook of the audit log",
  AUDIT_WEBHOOK_REMOVED: "ended the webhook of the audit log",
  TENANT_READ: "read data of a tenant",
  INBOX_RETRIED: "took a rejected action over again",
  INBOX_DROPPED: "dropped a rejected action",
  PROVIDER_CREATED: "created a provider",
  PROVIDER_UPDATED: "changed a provider",
  PROVIDER_DELETED: "deleted a provider",
  PROVIDER_SECRET_ROTATED: "rotated a provider's secret",
  WEBHOOK_CREATED: "created a subscription",
  WEBHOOK_DELETED: "deleted a subscription",
  WEBHOOK_UPDATED: "changed a subscription",
  WEBHOOK_SECRET_ROTATED: "rotated a subscription's secret",
  WEBHOOK_PREVIOUS_SECRET_ENDED: "ended a subscription's former secret",
  WEBHOOK_SECRET_SHOWN: "looked at a subscription's secret",
  WEBHOOK_ENABLED: "enabled a subscription",
  WEBHOOK_DISABLED: "disabled a subscription",
  WEBHOOK_TESTED: "sent a test event",
  WEBHOOK_REDELIVERED: "delivered an event again",
  WEBHOOK_RECOVERED: "recovered events",
  EMBEDDING_UPDATED: "changed whose pages may frame the portal",
  PORTAL_LINK_CREATED: "made a link to the portal",
  PORTAL_LINK_REDEEMED: "had a link to the portal followed",
  ALERTS_UPDATED: "changed what is told of trouble",
  ALERTS_SECRET_SHOWN: "looked at the secret of alerts",
  ALERTS_SECRET_ROTATED: "rotated the secret of alerts",
};

/**
 * Returns the phrase for an audit action. An action that this version of the dashboard does not know is shown
 * unchanged.
 */
export function actionWords(action: string): string {
  return ACTION_WORDS[action] ?? action;
}

/** Audit actions that the list highlights, because somebody who investigates an incident looks for them first. */
const SEVERE_ACTIONS = new Set([
  "AUTH_LOCKED",
  "RECOVERY_CODE_USED",
  "SECOND_FACTORS_RESET",
  "AUTHZ_DENIED",
  "REFRESH_REPLAYED",
  "CODE_REPLAYED",
  "IMPERSONATION_STARTED",
  "SSO_REFUSED",
]);
export const isSevere = (action: string): boolean => SEVERE_ACTIONS.has(action);

/**
 * Converts the details of an audit log entry to pairs of name and text, in their original order. Nested values
 * become JSON.
 */
export function detailPairs(details: Readonly<Record<string, unknown>>): [string, string][] {
  return Object.entries(details).map(([name, value]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
}
