import type { Db } from "../../../db/client.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { recordAuditHourly } from "../queries/audit.ts";
import { partnerOfCompany } from "../queries/users.ts";

/** The data that an operator reads, as `details.kind` of `TENANT_READ` names it (contract 10.3). */
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
  | "inbox";

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Records that an operator reads data of a partner and its accounts: at most one row per operator, partner, kind and hour
 * of the clock. `partnerId` is null for a list of several partners and for data of the platform itself.
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
 * Records that an operator reads data of a company as a read of its partner. `companyId` is null for a list of several
 * companies, and undefined for a company that does not exist.
 */
export async function recordCompanyRead(
  deps: Deps,
  caller: Caller,
  { companyId, kind }: { readonly companyId: number | null | undefined; readonly kind: TenantData },
): Promise<void> {
  const partnerId = await partnerOfCompany(deps.db, companyId);
  // Only the log of one tenant is data of a tenant; that of the platform is what operators watch.
  if (kind === "audit-log" && partnerId === null) return;
  await recordTenantRead(deps, caller, { partnerId, kind });
}
