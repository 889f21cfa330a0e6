import { Type, type Static } from "@sinclair/typebox";

import { isRowId, pageQuery } from "../http/list.ts";
import { instantText, rowId } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";

/**
 * Every action of the audit log (contract 3.8). Comments name what the `details` of the actions below them
 * hold.
 */
export const AUDIT_ACTIONS = [
  // A sign-in that succeeded: method, jti.
  "AUTH_LOGIN",
  // A wrong password: method. The actor is the user if the email belongs to one; the email itself is never kept.
  "AUTH_LOGIN_FAILED",
  // Five wrong passwords in a row: method, locked_until.
  "AUTH_LOCKED",
  "AUTH_LOGOUT",
  // A client that did not prove who it is: client_id, null where the text is none. This action and the next two stand
  // for repeats as well: a row is written at once, and repeats, how many more came within a minute, is in the next one.
  "CLIENT_AUTH_FAILED",
  // A wrong code of a mail, or one too many: email_digest, type, repeats.
  "OTP_FAILED",
  // A wrong signature of a review site: provider, null where the text is none; repeats.
  "PROVIDER_AUTH_FAILED",
  // A refusal by role, scope or tenant: method, path, reason.
  "AUTHZ_DENIED",
  // A sign-in ended from the list of sessions: session_id, revoked.
  "SESSION_REVOKED",
  // A token made outside of a sign-in: kind, jti.
  "TOKEN_ISSUED",
  // kind, jti.
  "TOKEN_REVOKED",
  // A dashboard token was shown again: kind, jti.
  "TOKEN_VIEWED",
  // A token that is no sign-in was used, at most once in an hour of the clock: kind, jti.
  "TOKEN_USED",
  // A refresh token was redeemed: session_id, jti of the new access token.
  "TOKEN_REFRESHED",
  // A refresh token was used again, so its sign-in was ended: session_id, revoked.
  "REFRESH_REPLAYED",
  // An authorization code was used again, so its sign-in was ended: client_id, session_id, revoked.
  "CODE_REPLAYED",
  // A user let a client act for them, or did not: client_id, scope.
  "CONSENT_GRANTED",
  "CONSENT_DENIED",
  // An OAuth client: client_id; of an update also fields, the names of those that were sent.
  "CLIENT_CREATED",
  "CLIENT_UPDATED",
  "CLIENT_SECRET_ROTATED",
  "CLIENT_DELETED",
  // method (the kind of token that allowed it), revoked (how many tokens it ended).
  "PASSWORD_RESET",
  // The actor is the account owner, the impersonator is the caller: jti, reason.
  "IMPERSONATION_STARTED",
  // Who may frame the portal: origins, how many there are now.
  "EMBEDDING_UPDATED",
  // A link to the portal was made: pages, scope, expires_at.
  "PORTAL_LINK_CREATED",
  // It was followed: session_id, jti, pages, scope. Details of whatever is done in that session have it as
  // portal_session.
  "PORTAL_LINK_REDEEMED",
  // Single sign-on. leg (redirect, callback or exchange), reason (`RefusalReason` in src/sso/model.ts), and what is
  // known of connection_id, and of the provider's answer: status, error, field, claim, or the fault of the connection
  // to it.
  "SSO_REFUSED",
  // The first sign-in through a provider: connection_id, issuer.
  "SSO_LINKED",
  // connection_id, connection_company_id, issuer; updated also fields: the names of those that were sent.
  "SSO_CONNECTION_CREATED",
  "SSO_CONNECTION_UPDATED",
  "SSO_CONNECTION_DELETED",
  // retired, current, next: key ids.
  "KEY_ROTATED",
  // A retired key that no token needs any more: kid.
  "KEY_DROPPED",
  // Administration. user_id; created also company_id and role, deactivated also revoked (how many tokens it ended).
  "USER_CREATED",
  // Somebody was sent, or handed, a link to set the first password: user_id.
  "USER_INVITED",
  // user_id, from, to: roles.
  "USER_ROLE_CHANGED",
  "USER_DEACTIVATED",
  "USER_ACTIVATED",
  "USER_UNLOCKED",
  // company_id, type; deactivated also revoked.
  "COMPANY_CREATED",
  "COMPANY_DEACTIVATED",
  "COMPANY_ACTIVATED",
  // plan_id.
  "PLAN_CREATED",
  // store_id, company_id.
  "STORE_CREATED",
  // store_review_site_id, store_id, provider.
  "STORE_REVIEW_SITE_CREATED",
  // provider.
  "PROVIDER_CREATED",
  "PROVIDER_SECRET_ROTATED",
  // A webhook subscription: subscription_id, delivery_kind.
  "WEBHOOK_CREATED",
  "WEBHOOK_DELETED",
  // subscription_id, fields: the names of those that changed.
  "WEBHOOK_UPDATED",
  // subscription_id, grace_period_hours.
  "WEBHOOK_SECRET_ROTATED",
  // subscription_id.
  "WEBHOOK_PREVIOUS_SECRET_ENDED",
  "WEBHOOK_SECRET_SHOWN",
  // subscription_id, held: deliver or skip, test: whether one was sent first.
  "WEBHOOK_ENABLED",
  // subscription_id. Only by hand: the 20th failure disables without an actor.
  "WEBHOOK_DISABLED",
  // subscription_id, event_id.
  "WEBHOOK_TESTED",
  "WEBHOOK_REDELIVERED",
  // subscription_id, since, until, queued.
  "WEBHOOK_RECOVERED",
  // What a partner is told of trouble: fields, the names of those that were sent.
  "ALERTS_UPDATED",
  "ALERTS_SECRET_SHOWN",
  "ALERTS_SECRET_ROTATED",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

const ACTION_LENGTH = 64;

/** An unknown action finds no rows. `since` is the first instant of the range, `until` the first one after it. */
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

/** One row as it is stored. */
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

/** With the names that people and companies have now. */
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
