import { Type, type Static } from "@sinclair/typebox";

import { isRowId, pageQuery } from "../http/list.ts";
import { instantText, rowId } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";

/**
 * Lists every action of the audit log (contract 3.8). A comment names the keys in the `details` of the actions below
 * it.
 */
export const AUDIT_ACTIONS = [
  // A successful sign-in: method, jti.
  "AUTH_LOGIN",
  // A wrong password: method. The actor is the user if the email belongs to one; the email itself is never stored.
  "AUTH_LOGIN_FAILED",
  // Five wrong passwords in a row: method, locked_until.
  "AUTH_LOCKED",
  "AUTH_LOGOUT",
  // A client that failed to authenticate: client_id, null if the text cannot be a client id. For this action and the
  // next two, a row is written at once; `repeats` in the next row counts the failures within a minute after it.
  "CLIENT_AUTH_FAILED",
  // A wrong mailed code, or too many tries: email_digest, type, repeats.
  "OTP_FAILED",
  // A wrong signature of a review site: provider, null if the text cannot be a provider; repeats.
  "PROVIDER_AUTH_FAILED",
  // Access denied because of role, scope or tenant: method, path, reason.
  "AUTHZ_DENIED",
  // A sign-in that was ended from the list of sessions: session_id, revoked.
  "SESSION_REVOKED",
  // A token that was issued outside of a sign-in: kind, jti.
  "TOKEN_ISSUED",
  // A token that was revoked: kind, jti.
  "TOKEN_REVOKED",
  // A dashboard token that was shown again: kind, jti.
  "TOKEN_VIEWED",
  // Use of a token outside of a sign-in, at most once per hour of the clock: kind, jti.
  "TOKEN_USED",
  // A redeemed refresh token: session_id, jti of the new access token.
  "TOKEN_REFRESHED",
  // A refresh token that was used twice, which ended its sign-in: session_id, revoked.
  "REFRESH_REPLAYED",
  // An authorization code that was used twice, which ended its sign-in: client_id, session_id, revoked.
  "CODE_REPLAYED",
  // Consent of a user to an OAuth client, given or denied: client_id, scope.
  "CONSENT_GRANTED",
  "CONSENT_DENIED",
  // An OAuth client: client_id; for an update also fields, the names of the fields in the request.
  "CLIENT_CREATED",
  "CLIENT_UPDATED",
  "CLIENT_SECRET_ROTATED",
  "CLIENT_DELETED",
  // A new password: method (the kind of token that allowed it), revoked (the number of ended tokens).
  "PASSWORD_RESET",
  // The actor is the account owner, the impersonator is the caller: jti, reason.
  "IMPERSONATION_STARTED",
  // The origins that may embed the portal in a frame: origins, their new number.
  "EMBEDDING_UPDATED",
  // A new portal link: pages, scope, expires_at.
  "PORTAL_LINK_CREATED",
  // A portal link that was used: session_id, jti, pages, scope. Details of every action in that session contain its
  // id as portal_session.
  "PORTAL_LINK_REDEEMED",
  // A rejected single sign-on: leg (redirect, callback or exchange) and reason (`SsoErrorReason` in src/sso/model.ts).
  // As far as known also connection_id and, from the provider's response, status, error, field or claim; fault if the
  // provider did not respond.
  "SSO_REFUSED",
  // The first sign-in of a user through a provider: connection_id, issuer.
  "SSO_LINKED",
  // An SSO connection: connection_id, connection_company_id, issuer; for an update also fields, the names of the
  // fields in the request.
  "SSO_CONNECTION_CREATED",
  "SSO_CONNECTION_UPDATED",
  "SSO_CONNECTION_DELETED",
  // Key ids by their new state: retired, current, next.
  "KEY_ROTATED",
  // A retired key that no token needs any more: kid.
  "KEY_DROPPED",
  // Administration of users: user_id; created also company_id and role, deactivated also revoked (the number of ended
  // tokens).
  "USER_CREATED",
  // A link to set the first password, mailed or handed over: user_id.
  "USER_INVITED",
  // A change of role: user_id, from, to.
  "USER_ROLE_CHANGED",
  "USER_DEACTIVATED",
  "USER_ACTIVATED",
  "USER_UNLOCKED",
  // Companies: company_id, type; deactivated also revoked.
  "COMPANY_CREATED",
  "COMPANY_DEACTIVATED",
  "COMPANY_ACTIVATED",
  // A new plan: plan_id.
  "PLAN_CREATED",
  // A new store: store_id, company_id.
  "STORE_CREATED",
  // A store's page on a review site: store_review_site_id, store_id, provider.
  "STORE_REVIEW_SITE_CREATED",
  // A review site: provider.
  "PROVIDER_CREATED",
  "PROVIDER_SECRET_ROTATED",
  // A webhook subscription: subscription_id, delivery_kind.
  "WEBHOOK_CREATED",
  "WEBHOOK_DELETED",
  // A changed subscription: subscription_id, fields (the names of the changed fields).
  "WEBHOOK_UPDATED",
  // A rotated signing secret: subscription_id, grace_period_hours.
  "WEBHOOK_SECRET_ROTATED",
  // A signing secret that was ended early or shown: subscription_id.
  "WEBHOOK_PREVIOUS_SECRET_ENDED",
  "WEBHOOK_SECRET_SHOWN",
  // An enabled subscription: subscription_id, held (deliver or skip), test (whether a test event was sent first).
  "WEBHOOK_ENABLED",
  // A subscription that a user disabled: subscription_id. The system disables after the 20th failure and writes no
  // actor.
  "WEBHOOK_DISABLED",
  // A test event, or one event that was delivered again: subscription_id, event_id.
  "WEBHOOK_TESTED",
  "WEBHOOK_REDELIVERED",
  // A range of events that was queued again: subscription_id, since, until, queued.
  "WEBHOOK_RECOVERED",
  // Alert settings of a partner: fields, the names of the fields in the request.
  "ALERTS_UPDATED",
  "ALERTS_SECRET_SHOWN",
  "ALERTS_SECRET_ROTATED",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

const ACTION_LENGTH = 64;

/** An unknown action matches no rows. `since` is inclusive, `until` exclusive. */
export const auditQuery = Type.Object({
  ...pageQuery(isRowId),
  action: Type.Optional(Type.String({ pattern: `^[A-Z_]{1,${ACTION_LENGTH}}$` })),
  actor_id: Type.Optional(rowId()),
  company_id: Type.Optional(rowId()),
  since: Type.Optional(instantText()),
  until: Type.Optional(instantText()),
});
export type AuditQuery = Static<typeof auditQuery>;

const idOrNull = Type.Union([Type.Integer(), Type.Null()]);
const textOrNull = Type.Union([Type.String(), Type.Null()]);

export const auditEntry = Type.Object(
  {
    id: Type.Integer(),
    at: Type.String({ format: "date-time" }),
    action: Type.String(),
    actor_id: idOrNull,
    actor_name: textOrNull,
    impersonator_id: idOrNull,
    impersonator_name: textOrNull,
    company_id: idOrNull,
    company_name: textOrNull,
    ip: textOrNull,
    user_agent: textOrNull,
    request_id: textOrNull,
    details: Type.Record(Type.String(), Type.Unknown()),
  },
  { title: "AuditEntry" },
);

/** A row of the audit log as it is stored. */
export interface StoredAuditRow {
  readonly id: number;
  readonly at: Date;
  readonly action: string;
  readonly actorId: number | null;
  readonly impersonatorId: number | null;
  readonly companyId: number | null;
  readonly ip: string | null;
  readonly userAgent: string | null;
  readonly requestId: string | null;
  readonly details: Record<string, unknown>;
}

/** A row with the current names of its users and company. */
export interface AuditRow extends StoredAuditRow {
  readonly actorName: string | null;
  readonly impersonatorName: string | null;
  readonly companyName: string | null;
}

export function showAuditEntry(row: AuditRow): Static<typeof auditEntry> {
  return {
    id: row.id,
    at: isoInstant(row.at),
    action: row.action,
    actor_id: row.actorId,
    actor_name: row.actorName,
    impersonator_id: row.impersonatorId,
    impersonator_name: row.impersonatorName,
    company_id: row.companyId,
    company_name: row.companyName,
    ip: row.ip,
    user_agent: row.userAgent,
    request_id: row.requestId,
    details: row.details,
  };
}
