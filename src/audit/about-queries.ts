import { eq, or, type SQL, sql } from "drizzle-orm";

import { anyOf } from "../../db/conditions.ts";
import { auditLog } from "../../db/schema/companies.ts";
import { AUDIT_ACTIONS, type AuditQuery } from "./model.ts";

/** The company or user of the query parameter `about`. */
interface Subject {
  readonly kind: "company" | "user";
  readonly id: number;
}

export function subjectOf({ about }: AuditQuery): Subject | undefined {
  if (about === undefined) return undefined;
  const [kind, id] = about.split(":");
  return { kind: kind === "company" ? kind : "user", id: Number(id) };
}

/** Audit actions on an object of another user or company. */
const ON_OTHERS = AUDIT_ACTIONS.filter((action) =>
  /^(COMPANY|USER|STORE|WEBHOOK|INTEGRATION|PASSWORD_RESET_S|SESSION|SECOND|SSO_(CONN|DOM|UNL)|TENANT|PORTAL_LINK_C|TOKEN_([IV]|REV)|CLIENT_[CSUD])/.test(
    action,
  ),
);

/** Matches all rows that can be about the subject. `concerns` decides which of them are. */
export function mayConcern({ kind, id }: Subject): SQL | undefined {
  // The cast accepts ids that are too large for a column of 32 bits.
  const wanted = sql`${id}::bigint`;
  const isBy =
    kind === "company"
      ? [eq(auditLog.companyId, wanted)]
      : [eq(auditLog.actorId, wanted), eq(auditLog.impersonatorId, wanted)];
  return or(...isBy, anyOf(auditLog.action, ON_OTHERS));
}

interface Row {
  readonly action: string;
  readonly actorId: number | null;
  readonly impersonatorId: number | null;
  readonly companyId: number | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Returns whether the subject, or a person of the company, has acted, or whether the action was on the subject or on an
 * object of the company. `ownerIds` are the company that the object belongs to and its partner.
 */
export function concerns({ kind, id }: Subject, row: Row, ownerIds: readonly unknown[]): boolean {
  const { actorId, impersonatorId, companyId, details } = row;
  const by = kind === "company" ? [companyId] : [actorId, impersonatorId];
  if (by.includes(id)) return true;
  // A denied request may name an object of another tenant.
  if (row.action === "AUTHZ_DENIED") return false;
  if (kind === "user") return details["user_id"] === id;
  const { company_id: company, partner_id: partner, connection_company_id: connected } = details;
  return [company, partner, connected, ...ownerIds].includes(id);
}
