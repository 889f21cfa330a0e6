import { Type, type Static } from "@sinclair/typebox";

import { cursorText, pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import type { RowOf } from "../http/shown.ts";
import { literals } from "../http/principal.ts";
import { instantAnswer, instantText, orNull, rowId, searchText } from "../http/text.ts";

/**
 * Lists every audit action (contract 3.8). Each comment lists the keys of the JSON field `details` for the actions
 * below it. In addition, the row of a request with a token has `token`. Updates have `fields`, the names of the
 * changed fields, and `changes`, their values.
 */
export const AUDIT_ACTIONS = [
  // Audit row of a successful sign-in; details: method, jti.
  "AUTH_LOGIN",
  // Audit row of a wrong password; details: method. The actor is the user if the email belongs to a user; the email
  // itself is never stored. If it belongs to no user, the details are method, network and repeats; the same applies to
  // AUTH_LOCKED.
  "AUTH_LOGIN_FAILED",
  // Audit row of a sign-in lock after five wrong passwords in a row; details: method, locked_until.
  "AUTH_LOCKED",
  "AUTH_LOGOUT",
  // Audit rows of a user's second factors; details: factor_id, kind.
  "SECOND_FACTOR_ADDED",
  "SECOND_FACTOR_REMOVED",
  // Audit row of a wrong proof; details: method, and locked_until if it locked the codes of the user's app.
  "SECOND_FACTOR_FAILED",
  // Audit row of a used recovery code; details: left, the number of remaining codes.
  "RECOVERY_CODE_USED",
  "RECOVERY_CODES_MADE",
  // Audit row of an operator's reset of a user's second factors; details: user_id, factors (their number), revoked.
  "SECOND_FACTORS_RESET",
  // Audit row of a changed requirement of a second factor; details: company_id, changes.
  "SECOND_FACTOR_POLICY",
  // Audit row of an OAuth client that failed to authenticate; details: client_id, which is null if the sent text cannot
  // be a client id. The first failure is written immediately; `repeats` in the next row counts the failures within the
  // minute after it. The next two actions are counted in the same way, and so are failures of unauthenticated clients
  // at the login and at single sign-on.
  "CLIENT_AUTH_FAILED",
  // Audit row of a wrong mailed code, or of too many tries; details: email_digest, type, repeats.
  "OTP_FAILED",
  // Audit row of a request with a wrong signature from a review site; details: repeats, provider, which is null if the
  // sent text cannot be the slug of a provider, and reason (`timestamp`) if the timestamp is wrong.
  "PROVIDER_AUTH_FAILED",
  // Audit row of access that was denied because of role, scope or tenant; details: method, path, reason and repeats. If
  // the request names an object of another tenant or user, the details are the id of the object and reason.
  "AUTHZ_DENIED",
  // Audit row of a sign-in that was ended from a list of sessions; details: session_id, revoked, user_id.
  "SESSION_REVOKED",
  // Audit row of a token that was issued outside of a sign-in; details: kind, jti, service_id for a service's token, and
  // user_id for an integration's.
  "TOKEN_ISSUED",
  // Audit row of a token that was revoked; details: kind, jti, service_id for a service's token, and user_id for a token
  // of another user.
  "TOKEN_REVOKED",
  // Audit row of a dashboard token that was shown again; details: kind, jti, and user_id for an integration's.
  "TOKEN_VIEWED",
  // Audit row of the use of a token outside of a sign-in, at most once per hour of the clock; details: kind, jti.
  "TOKEN_USED",
  // Audit row of a refresh token that was redeemed; details: session_id, jti of the new access token.
  "TOKEN_REFRESHED",
  // Audit row of a refresh token that was used twice, which ended its sign-in; details: session_id, revoked.
  "REFRESH_REPLAYED",
  // Audit row of an authorization code that was used twice, which ended its sign-in; details: client_id, session_id,
  // revoked.
  "CODE_REPLAYED",
  // Audit rows of a user's consent to an OAuth client, given or denied; details: client_id, scope.
  "CONSENT_GRANTED",
  "CONSENT_DENIED",
  // Audit rows of changes to an OAuth client; details: client_id; for an update also fields and changes.
  "CLIENT_CREATED",
  "CLIENT_UPDATED",
  "CLIENT_SECRET_ROTATED",
  "CLIENT_DELETED",
  // Audit row of a new password; details: method (the kind of token that allowed the change), revoked (the number of
  // ended tokens).
  "PASSWORD_RESET",
  // Audit row of an impersonation. The actor is the account owner, the impersonator is the caller; details: jti,
  // reason.
  "IMPERSONATION_STARTED",
  // Audit row of a change to the origins that may embed the portal in a frame; details: origins, the new number of
  // origins, and changes.
  "EMBEDDING_UPDATED",
  // Audit row of a new portal link; details: pages, scope, expires_at, partner_id.
  "PORTAL_LINK_CREATED",
  // Audit row of a portal link that was used; details: session_id, jti, pages, scope. The details of every later audit
  // row of that session contain the session id as portal_session.
  "PORTAL_LINK_REDEEMED",
  // Audit row of a rejected single sign-on; details: leg (redirect, callback or exchange) and reason (`SsoErrorReason`
  // in src/sso/model.ts). If they are known, also connection_id and, from the response of the identity provider,
  // status, error, field or claim. If the identity provider did not respond, also fault.
  "SSO_REFUSED",
  // Audit row of the first sign-in of a user through an identity provider; details: connection_id, issuer.
  "SSO_LINKED",
  // Audit row of a user who was unlinked from an identity provider; details: user_id, connection_id, issuer, revoked.
  "SSO_UNLINKED",
  // Audit rows of changes to an SSO connection; details: connection_id, connection_company_id, issuer; for an update
  // also fields and changes.
  "SSO_CONNECTION_CREATED",
  "SSO_CONNECTION_UPDATED",
  "SSO_CONNECTION_DELETED",
  // Audit row of a domain whose DNS record was found; details: those of SSO_CONNECTION_CREATED and fields, which
  // contains only the domain.
  "SSO_DOMAIN_PROVED",
  // Audit row of a user that the first sign-in through an identity provider created. The actor is this user; details:
  // connection_id, role.
  "SSO_USER_CREATED",
  // Audit row of a rotation of the signing keys; details: the key ids by their new state, as retired, current and
  // next.
  "KEY_ROTATED",
  // Audit row of a retired signing key that was deleted because no token needs it any more; details: kid.
  "KEY_DROPPED",
  // Audit rows of the administration of users; details: user_id; for a created user also company_id and role, for a
  // deactivated user also revoked (the number of ended tokens).
  "USER_CREATED",
  // Audit row of a link to set the first password, mailed or shown to an operator; details: user_id.
  "USER_INVITED",
  // Audit rows of a user who was changed or deleted; details: user_id, company_id. A change also has fields
  // and changes, which contains only role and store_ids.
  "USER_UPDATED",
  "USER_DELETED",
  // Audit row of a change of a user's role; details: user_id, from, to.
  "USER_ROLE_CHANGED",
  "USER_DEACTIVATED",
  "USER_ACTIVATED",
  "USER_UNLOCKED",
  "PASSWORD_RESET_SENT",
  // Audit rows of changes to companies; details: company_id, type; for a deactivated company also revoked (the number
  // of ended tokens), for an activated one also held (deliver or skip).
  "COMPANY_CREATED",
  "COMPANY_DEACTIVATED",
  "COMPANY_ACTIVATED",
  // Audit row of a request to erase a person; details: erasure_id, kind (user or reviewer).
  "ERASURE_REQUESTED",
  // Audit rows of a requested or cancelled deletion of a company; details: company_id, type; a request also has due_at.
  // When the deletion is complete, COMPANY_DELETED is written, with requested_by.
  "COMPANY_DELETION_REQUESTED",
  "COMPANY_DELETION_CANCELLED",
  // Audit rows of a company that was updated or deleted; details: company_id, type; for an update also fields and
  // changes; for a deletion also the name of the company.
  "COMPANY_UPDATED",
  "COMPANY_DELETED",
  // Audit rows of changes to plans; details: plan_id; for an update also fields and changes, for a deletion also
  // name.
  "PLAN_CREATED",
  "PLAN_UPDATED",
  "PLAN_DELETED",
  // Audit rows of changes to stores; details: store_id, company_id; for an update also fields and changes, for a
  // deletion also name.
  "STORE_CREATED",
  "STORE_UPDATED",
  "STORE_DELETED",
  // Audit rows of changes to a connection between a store and its page on a review site; details: store_review_site_id,
  // store_id, provider; for an update also fields and changes.
  "STORE_REVIEW_SITE_CREATED",
  "STORE_REVIEW_SITE_UPDATED",
  "STORE_REVIEW_SITE_DELETED",
  // Audit rows of changes to a service of the platform; details: service_id; for an update also fields and changes, for
  // a deletion also name and revoked (the number of ended tokens). The rows of its tokens are TOKEN_ISSUED and
  // TOKEN_REVOKED.
  "SERVICE_CREATED",
  "SERVICE_UPDATED",
  "SERVICE_DELETED",
  // Audit rows of changes to an integration of a partner; details: user_id; for an update also fields and changes, for a
  // deletion also name and revoked (the number of ended tokens). The rows of its token are TOKEN_ISSUED, TOKEN_VIEWED
  // and TOKEN_REVOKED.
  "INTEGRATION_CREATED",
  "INTEGRATION_UPDATED",
  "INTEGRATION_DELETED",
  // Audit rows of `bun run import` and `bun run export`; details: file; for an import also counts.
  "DATA_IMPORTED",
  "DATA_EXPORTED",
  // Audit row of an export of the audit log, at most once per user and hour of the clock; no details.
  "AUDIT_EXPORTED",
  // Audit rows of an audit webhook that was set, tested or removed; details: host; if it was set, also start (oldest,
  // newest or null).
  "AUDIT_WEBHOOK_SET",
  "AUDIT_WEBHOOK_TESTED",
  "AUDIT_WEBHOOK_REMOVED",
  // Audit row of an operator who read data of a partner, at most once per operator, partner, kind of data and hour of
  // the clock; details: partner_id (null for a list of several partners), kind.
  "TENANT_READ",
  // Audit rows of an action of the inbox that an operator retried or dropped; details: position; for a dropped action
  // also its state.
  "INBOX_RETRIED",
  "INBOX_DROPPED",
  // Audit rows of changes to a provider; details: provider; for an update also fields and changes.
  "PROVIDER_CREATED",
  "PROVIDER_UPDATED",
  "PROVIDER_DELETED",
  // Audit row of a rotated signing secret of a provider; details: provider, grace_period_hours.
  "PROVIDER_SECRET_ROTATED",
  // Audit rows of a webhook subscription that was created or deleted; details: subscription_id, delivery_kind.
  "WEBHOOK_CREATED",
  "WEBHOOK_DELETED",
  // Audit row of a changed webhook subscription; details: subscription_id, fields, changes.
  "WEBHOOK_UPDATED",
  // Audit row of a rotated signing secret of a webhook; details: subscription_id, grace_period_hours.
  "WEBHOOK_SECRET_ROTATED",
  // Audit rows of a webhook's signing secret that was ended early or shown; details: subscription_id.
  "WEBHOOK_PREVIOUS_SECRET_ENDED",
  "WEBHOOK_SECRET_SHOWN",
  // Audit row of a request to enable a webhook subscription; details: subscription_id, held (deliver or skip), test. If
  // test is set, the response to a test event decides whether the subscription is enabled. The test event has the row
  // WEBHOOK_TESTED of the same request.
  "WEBHOOK_ENABLED",
  // Audit row of a webhook subscription that a user disabled; details: subscription_id. The automatic disabling after
  // the 20th permanent failure has no row.
  "WEBHOOK_DISABLED",
  // Audit rows of a test event, or of events that were queued again; details: subscription_id and event_id, or
  // event_ids and queued (their number). If the event waited for a retry, which is now due, also hastened.
  "WEBHOOK_TESTED",
  "WEBHOOK_REDELIVERED",
  // Audit row of a check of a webhook's endpoint; details: subscription_id, check_id.
  "WEBHOOK_CHECKED",
  // Audit row of a range of events that was queued again; details: subscription_id, since, until, queued (the number
  // of events).
  "WEBHOOK_RECOVERED",
  "WEBHOOK_BATCH_REQUESTED",
  // Audit rows of a partner's alert settings; details of an update: fields and changes, without recipients.
  "ALERTS_UPDATED",
  "ALERTS_SECRET_SHOWN",
  "ALERTS_SECRET_ROTATED",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/**
 * Categories of audit actions, by the prefixes of their names. An audit action belongs to the first category that
 * matches.
 */
const CATEGORIES = {
  sign_in: /^(AUTH|SECOND|RECOVERY|OTP|PASSWORD|SSO|SESSION|IMPERSONATION|CODE|CONSENT)/,
  tokens: /^(TOKEN|REFRESH|CLIENT|KEY|SERVICE|INTEGRATION)/,
  webhooks: /^(WEBHOOK|EMBEDDING|PORTAL|ALERTS)/,
  users: /^(USER|COMPANY|ERASURE|TENANT)/,
  platform: /^/,
} as const;
type AuditCategory = keyof typeof CATEGORIES;
const CATEGORY_NAMES = [
  "sign_in",
  "tokens",
  "webhooks",
  "users",
  "platform",
] as const satisfies AuditCategory[];

/** Returns the audit actions of a category. */
export const actionsOf = (category: AuditCategory): AuditAction[] =>
  AUDIT_ACTIONS.filter(
    (action) => CATEGORY_NAMES.find((name) => CATEGORIES[name].test(action)) === category,
  );

const ACTION_LENGTH = 64;

/**
 * Query parameters of the audit log. An unknown audit action matches no rows. `since` is inclusive, `until` exclusive.
 */
export const auditQuery = Type.Object({
  ...pageQuery(isRowId),
  action: Type.Optional(Type.String({ pattern: `^[A-Z_]{1,${ACTION_LENGTH}}$` })),
  category: Type.Optional(
    literals(CATEGORY_NAMES, { examples: ["webhooks"], description: "Category of the actions." }),
  ),
  q: Type.Optional(searchText()),
  actor_id: Type.Optional(rowId()),
  company_id: Type.Optional(rowId()),
  about: Type.Optional(
    Type.String({
      pattern: "^(company|user):[1-9]\\d{0,9}$",
      explain: "must be company:ID or user:ID",
      examples: ["company:7"],
    }),
  ),
  reads: Type.Optional(literals(["false"])),
  since: Type.Optional(instantText()),
  until: Type.Optional(instantText()),
});
export type AuditQuery = Static<typeof auditQuery>;

const idOrNull = orNull(Type.Integer());
const textOrNull = orNull(Type.String());

export const auditEntry = Type.Object(
  {
    id: Type.Integer(),
    at: instantAnswer(),
    action: Type.String(),
    actor_id: idOrNull,
    actor_name: textOrNull,
    impersonator_id: idOrNull,
    impersonator_name: textOrNull,
    company_id: idOrNull,
    company_name: textOrNull,
    object_name: textOrNull,
    ip: textOrNull,
    user_agent: textOrNull,
    request_id: textOrNull,
    details: Type.Record(Type.String(), Type.Unknown()),
  },
  {
    title: "AuditEntry",
    examples: [
      {
        id: 90210,
        impersonator_id: null,
        impersonator_name: null,
        company_name: "Stellar Partners",
        object_name: "CRM",
        details: { subscription_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K", delivery_kind: "immediate" },
      },
    ],
  },
);

/** Maximum number of rows in one response of the export; also the default. */
export const EXPORTED_ROWS = 1_000;

export const auditExportQuery = Type.Object({
  after: Type.Optional(
    cursorText(isRowId, {
      examples: ["OTAyMTA"],
      description:
        "The `cursor` of the last row that the caller has. The export continues after that row.",
    }),
  ),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: EXPORTED_ROWS })),
});
export type AuditExportQuery = Static<typeof auditExportQuery>;

export const AuditExport = Type.String({
  title: "AuditExport",
  contentType: "application/x-ndjson",
  description: "Each line is an `AuditEntry` with its `cursor`.",
  examples: ['{"id":90210,"action":"WEBHOOK_CREATED","cursor":"OTAyMTA"}\n'],
});

/** A row of the audit log with the current names of its users and company. */
export type AuditRow = RowOf<typeof auditEntry>;
