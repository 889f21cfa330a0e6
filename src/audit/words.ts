import type { AuditAction } from "./model.ts";

/**
 * Maps an audit action to a phrase that follows the actor's name, such as "signed in". The object of the action is in
 * brackets, and its name takes their place. The dashboard shows the sentence, and a search of the audit log covers it.
 */
export const ACTION_WORDS: Readonly<Record<AuditAction, string>> = {
  AUTH_LOGIN: "signed in",
  AUTH_LOGIN_FAILED: "entered a wrong password",
  AUTH_LOCKED: "was locked after wrong passwords",
  AUTH_LOGOUT: "signed out",
  SECOND_FACTOR_ADDED: "added a second factor",
  SECOND_FACTOR_REMOVED: "removed a second factor",
  SECOND_FACTOR_FAILED: "gave a wrong second factor",
  RECOVERY_CODE_USED: "used a recovery code",
  RECOVERY_CODES_MADE: "created new recovery codes",
  SECOND_FACTORS_RESET: "reset the second factors of [a user]",
  SECOND_FACTOR_POLICY: "changed the second factor requirement of [a company]",
  CLIENT_AUTH_FAILED: "sent wrong credentials for [a client]",
  OTP_FAILED: "entered a wrong code",
  PROVIDER_AUTH_FAILED: "sent a wrong signature for [a provider]",
  AUTHZ_DENIED: "was denied access",
  SESSION_REVOKED: "ended a session of [a user]",
  TOKEN_ISSUED: "generated a token",
  TOKEN_REVOKED: "revoked a token",
  TOKEN_VIEWED: "viewed a token",
  TOKEN_USED: "used a token",
  TOKEN_REFRESHED: "refreshed a sign-in",
  REFRESH_REPLAYED: "reused a refresh token",
  CODE_REPLAYED: "reused an authorization code of [a client]",
  CONSENT_GRANTED: "authorized [a client]",
  CONSENT_DENIED: "declined to authorize [a client]",
  CLIENT_CREATED: "created [a client]",
  CLIENT_UPDATED: "updated [a client]",
  CLIENT_SECRET_ROTATED: "rotated the secret of [a client]",
  CLIENT_DELETED: "deleted [a client]",
  PASSWORD_RESET: "set a new password",
  IMPERSONATION_STARTED: "was impersonated",
  SSO_REFUSED: "was denied single sign-on",
  SSO_LINKED: "linked an identity provider",
  SSO_UNLINKED: "unlinked [a user] from an identity provider",
  SSO_CONNECTION_CREATED: "created a single sign-on connection of [a company]",
  SSO_CONNECTION_UPDATED: "updated a single sign-on connection of [a company]",
  SSO_CONNECTION_DELETED: "deleted a single sign-on connection of [a company]",
  SSO_DOMAIN_PROVED: "verified a single sign-on domain of [a company]",
  SSO_USER_CREATED: "was created by single sign-on",
  KEY_ROTATED: "rotated the signing keys",
  KEY_DROPPED: "deleted a retired signing key",
  USER_CREATED: "created [a user]",
  USER_UPDATED: "updated [a user]",
  USER_DELETED: "deleted [a user]",
  USER_INVITED: "invited [a user]",
  USER_ROLE_CHANGED: "changed the role of [a user]",
  USER_DEACTIVATED: "deactivated [a user]",
  USER_ACTIVATED: "activated [a user]",
  USER_UNLOCKED: "unlocked [a user]",
  PASSWORD_RESET_SENT: "sent a password reset to [a user]",
  ERASURE_REQUESTED: "requested the erasure of a person",
  COMPANY_CREATED: "created [a company]",
  COMPANY_DELETION_REQUESTED: "requested the deletion of [a company]",
  COMPANY_DELETION_CANCELLED: "cancelled the deletion of [a company]",
  COMPANY_DEACTIVATED: "deactivated [a company]",
  COMPANY_ACTIVATED: "activated [a company]",
  COMPANY_UPDATED: "updated [a company]",
  COMPANY_DELETED: "deleted [a company]",
  PLAN_CREATED: "created [a plan]",
  PLAN_UPDATED: "updated [a plan]",
  PLAN_DELETED: "deleted [a plan]",
  STORE_CREATED: "created [a store]",
  STORE_UPDATED: "updated [a store]",
  STORE_DELETED: "deleted [a store]",
  STORE_REVIEW_SITE_CREATED: "connected [a store] to a review site",
  STORE_REVIEW_SITE_UPDATED: "updated a review site connection of [a store]",
  STORE_REVIEW_SITE_DELETED: "deleted a review site connection of [a store]",
  SERVICE_CREATED: "created [a service]",
  SERVICE_UPDATED: "updated [a service]",
  SERVICE_DELETED: "deleted [a service]",
  INTEGRATION_CREATED: "created [an integration]",
  INTEGRATION_UPDATED: "updated [an integration]",
  INTEGRATION_DELETED: "deleted [an integration]",
  DATA_IMPORTED: "imported data",
  DATA_EXPORTED: "exported data",
  AUDIT_EXPORTED: "exported the audit log",
  AUDIT_WEBHOOK_SET: "set the audit webhook",
  AUDIT_WEBHOOK_TESTED: "tested the audit webhook",
  AUDIT_WEBHOOK_REMOVED: "removed the audit webhook",
  TENANT_READ: "read data of [a partner]",
  INBOX_RETRIED: "retried a rejected action of the inbox",
  INBOX_DROPPED: "deleted an action of the inbox",
  PROVIDER_CREATED: "created [a provider]",
  PROVIDER_UPDATED: "updated [a provider]",
  PROVIDER_DELETED: "deleted [a provider]",
  PROVIDER_SECRET_ROTATED: "rotated the secret of [a provider]",
  WEBHOOK_CREATED: "created [a subscription]",
  WEBHOOK_DELETED: "deleted [a subscription]",
  WEBHOOK_UPDATED: "updated [a subscription]",
  WEBHOOK_SECRET_ROTATED: "rotated the secret of [a subscription]",
  WEBHOOK_PREVIOUS_SECRET_ENDED: "ended the previous secret of [a subscription]",
  WEBHOOK_SECRET_SHOWN: "viewed the secret of [a subscription]",
  WEBHOOK_ENABLED: "enabled [a subscription]",
  WEBHOOK_DISABLED: "disabled [a subscription]",
  WEBHOOK_TESTED: "sent a test event to [a subscription]",
  WEBHOOK_CHECKED: "checked the endpoint of [a subscription]",
  WEBHOOK_REDELIVERED: "resent an event of [a subscription]",
  WEBHOOK_RECOVERED: "recovered events of [a subscription]",
  WEBHOOK_BATCH_REQUESTED: "sent the waiting batch of [a subscription]",
  EMBEDDING_UPDATED: "updated the origins that may embed the portal",
  PORTAL_LINK_CREATED: "created a portal link for [a partner]",
  PORTAL_LINK_REDEEMED: "opened a portal link",
  ALERTS_UPDATED: "updated the alert settings",
  ALERTS_SECRET_SHOWN: "viewed the alert secret",
  ALERTS_SECRET_ROTATED: "rotated the alert secret",
};

/** The fields of an audit row that its sentence is made of. */
interface AuditedAction {
  readonly action: string;
  readonly actor_id: number | null;
  readonly impersonator_id: number | null;
  readonly company_id: number | null;
  readonly object_name: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The sentence about an audit row without its actor: the text before the object, its name, and the text after it. */
export type AuditSentence = readonly [before: string, name: string, after: string];

/** Returns the sentence about an audit row, with the name of the object if it is known, and the reason. */
export function sentenceOf(entry: AuditedAction): AuditSentence {
  const { action, details, actor_id: actor, object_name: name } = entry;
  const template = templateOf(entry);
  const reason = reasonOf(action, details);
  const [, before = "", object = "", after = ""] = /^([^[]*)\[([^\]]*)\](.*)$/.exec(template) ?? [];
  if (object === "") return [template + reason, "", ""];
  const rest = after + reason;
  if (actor !== null && details["user_id"] === actor)
    return [`${before}${before.endsWith(" of ") ? "their own" : "themselves"}${rest}`, "", ""];
  // A created or updated service, or a token of an integration, needs its kind; people and companies do not.
  const noun = /^(?:a|an) (?!user|company|partner)(.*)$/.exec(object)?.[1];
  if (name === null) return [before + object + rest, "", ""];
  return [noun === undefined ? before : `${before}the ${noun} `, name, rest];
}

/** Returns the sentence about an audit row as one text. */
export const entryWords = (entry: AuditedAction): string => sentenceOf(entry).join("");

/**
 * Returns the phrase of an audit row with its object in brackets. Some actions have different phrases, depending on
 * their details: the response to a test, for example, decides whether the subscription is enabled.
 */
function templateOf(entry: AuditedAction): string {
  const { action, details, object_name: name } = entry;
  const { test, kind, user_id: userId, service_id: serviceId, hastened, queued } = details;
  if (action === "WEBHOOK_ENABLED" && test === true)
    return "sent a test event to enable [a subscription]";
  // A portal link of an operator acts as the owner of the partner.
  if (action === "PORTAL_LINK_CREATED" && details["partner_id"] !== entry.company_id)
    return "created a portal link to act as [a partner]";
  if (action === "PORTAL_LINK_REDEEMED" && entry.impersonator_id !== null)
    return "was impersonated through a portal link";
  if (action === "PROVIDER_AUTH_FAILED" && details["reason"] === "timestamp")
    return "sent a wrong timestamp for [a provider]";
  if (hastened === true) return "requested an immediate retry of an event of [a subscription]";
  if (typeof queued === "number") {
    const verb = action === "WEBHOOK_RECOVERED" ? "recovered" : "resent";
    return `${verb} ${queued === 1 ? "an event" : `${queued} events`} of [a subscription]`;
  }
  if (action === "TENANT_READ" && kind === "search") return "searched all companies";
  if (action === "TENANT_READ")
    return `read ${TENANT_DATA.get(kind) ?? "data"} of ${name === null ? "all companies" : "[a partner]"}`;
  if (typeof (userId ?? serviceId) === "number") return OF_OTHERS[action] ?? plainTemplate(action);
  if (action === "TOKEN_ISSUED" && kind === "password_reset")
    return "entered a code to choose a new password";
  return plainTemplate(action).replace(/(?<= a )token$/, TOKEN_KINDS.get(kind) ?? "token");
}

/** Names of the kinds of tokens that people see. */
export const TOKEN_KINDS: ReadonlyMap<unknown, string> = new Map([
  ["access", "sign-in token"],
  ["dashboard_pat", "personal access token"],
  ["api_pat", "24-hour token"],
  ["portal", "portal session"],
]);

const plainTemplate = (action: string): string => TEMPLATES.get(action) ?? action;
const TEMPLATES: ReadonlyMap<string, string> = new Map(Object.entries(ACTION_WORDS));

/** Phrases of actions on the token of another user, of an integration or of a service. */
const OF_OTHERS: Readonly<Record<string, string>> = {
  TOKEN_ISSUED: "generated a token of [another user]",
  TOKEN_REVOKED: "revoked a token of [another user]",
  TOKEN_VIEWED: "viewed the token of [another user]",
};

/** Words for the kinds of data that an operator reads (`TenantData`). */
const TENANT_DATA: ReadonlyMap<unknown, string> = new Map([
  ["webhooks", "the webhooks"],
  ["partners", "the settings"],
  ["accounts", "the accounts"],
  ["companies", "the details"],
  ["stores", "the stores"],
  ["store-review-sites", "the review site connections"],
  ["users", "the users"],
  ["audit-log", "the audit log"],
  ["oauth-clients", "the OAuth clients"],
  ["sso-connections", "the single sign-on connections"],
  ["backlogs", "the backlogs"],
  ["dispatcher", "the delivery queues"],
  ["inbox", "the inbox"],
]);

/** Words for the reasons for which access is denied. */
const DENIALS: ReadonlyMap<unknown, string> = new Map([
  ["forbidden", "the role or the kind of token does not allow it"],
  ["insufficient_scope", "the token lacks the scope"],
  ["foreign_record", "it belongs to somebody else"],
  ["foreign_partner", "it belongs to another partner"],
]);

/** Returns the end of a sentence: the reason that a person gave, why access was denied, or the changed fields. */
function reasonOf(action: string, { reason, method, path, fields }: AuditedAction["details"]) {
  if (action === "PROVIDER_AUTH_FAILED") return "";
  if (action === "AUTHZ_DENIED") {
    const what = typeof path === "string" ? ` to ${String(method)} ${path}` : "";
    const why = DENIALS.get(reason);
    return why === undefined ? what : `${what}: ${why}`;
  }
  if (typeof reason === "string" && action === "SSO_REFUSED")
    return `: ${reason.replaceAll("_", " ")}`;
  if (typeof reason === "string" && reason !== "") return `: “${reason}”`;
  const names = Array.isArray(fields) ? fields.map((one) => String(one).replaceAll("_", " ")) : [];
  return names.length === 0 ? "" : ` (${names.join(", ")})`;
}

/** Returns the phrase for an audit action. An action that this version does not know is returned unchanged. */
export const phraseOf = (action: string): string => plainTemplate(action).replaceAll(/[[\]]/g, "");
