import type { Db } from "../../../db/client.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { recordAuditHourly } from "../../audit/queries.ts";
import { partnerOfCompany } from "../user-queries.ts";

/** The kinds of data that an operator reads, as they stand in `details.kind` of `TENANT_READ` (contract 10.3). */
export type TenantData =
  | "webhooks"
  | "partners"
  | "accounts"
  | "companies"
  | "stores"
  | "store-review-sites"
  | "users"
  | "audit-log"
  | "oauth-clients"
  | "sso-connections"
  | "backlogs"
  | "dispatcher"
  | "inbox"
  | "search";

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Audits that an operator reads data of a partner and its accounts. At most one row is written per operator, partner,
 * kind and hour of the clock. `partnerId` is null for a list of several partners and for data of the platform itself.
 */
export async function recordTenantRead(
  { db, clock }: Deps,
  { principal: actor, requestContext }: Caller,
  read: { readonly partnerId: number | null; readonly kind: TenantData },
): Promise<void> {
  const details = { partner_id: read.partnerId, kind: read.kind };
  const entry = { at: clock.now(), action: "TENANT_READ", actor, requestContext, details } as const;
  await db.transaction((tx) => recordAuditHourly(tx, entry));
}

/**
 * Audits that an operator reads data of a company, as a read of the company's partner. `companyId` is null for a list
 * of several companies, and undefined for a company that does not exist.
 */
export async function recordCompanyRead(
  deps: Deps,
  caller: Caller,
  { companyId, kind }: { readonly companyId: number | null | undefined; readonly kind: TenantData },
): Promise<void> {
  const partnerId = await partnerOfCompany(deps.db, companyId);
  // The platform's own audit log belongs to no tenant, so reading it is not recorded.
  if (kind === "audit-log" && partnerId === null) return;
  await recordTenantRead(deps, caller, { partnerId, kind });
}
