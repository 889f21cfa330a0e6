/** Every action that the audit log knows (decisions.md 2, audit log). What a row's `details` holds is said beside it. */
export const AUDIT_ACTIONS = [
  // A sign-in that succeeded: method, jti.
  "AUTH_LOGIN",
  // A wrong password: method. The actor is the user if the email belongs to one; the email itself is never kept.
  "AUTH_LOGIN_FAILED",
  // Five wrong passwords in a row: method, locked_until.
  "AUTH_LOCKED",
  "AUTH_LOGOUT",
  // A refusal by role, scope or tenant: method, path, reason.
  "AUTHZ_DENIED",
  // A token made outside of a sign-in: kind, jti.
  "TOKEN_ISSUED",
  // kind, jti.
  "TOKEN_REVOKED",
  // retired, current, next: key ids.
  "KEY_ROTATED",
  // A webhook subscription: subscription_id, delivery_kind.
  "WEBHOOK_CREATED",
  "WEBHOOK_DELETED",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];
