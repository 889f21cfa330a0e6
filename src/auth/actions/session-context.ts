import type { DbOrTx } from "../../../db/client.ts";
import type { SessionContext } from "../model.ts";
import { findContext, type ContextRow } from "../queries/users.ts";

/** What login, token verification and password reset show of the user (contract 4.5). */
export async function readContext(
  db: DbOrTx,
  userId: number,
): Promise<{ context: SessionContext; locationCount: number }> {
  const row = await findContext(db, userId);
  if (row === undefined) throw new Error(`User ${userId} has no context.`);
  return { context: contextOf(row), locationCount: locationCount(row) };
}

/** Counts an account user's own stores; for all others those of the whole tenant. */
function locationCount(row: ContextRow): number {
  return row.companyType === "account" ? row.storeIds.length : row.tenantStores;
}

function contextOf(row: ContextRow): SessionContext {
  return {
    user: {
      id: row.id,
      email: row.email,
      name: row.name,
      role: row.role,
      company_id: row.companyId,
      store_ids: [...row.storeIds],
    },
    company: {
      id: row.companyId,
      type: row.companyType,
      name: row.companyName,
      partner_id: row.partnerId,
    },
    theme: { primary_color: row.primaryColor, logo_url: row.logoUrl },
    white_label: {
      enabled: row.whiteLabelEnabled,
      brand_name: row.brandName,
      domain: row.whiteLabelDomain,
    },
    ...planOf(row),
  };
}

/** Only account companies have a plan (contract 4.5). */
function planOf({ planId, planName, planFeatures }: ContextRow): Pick<SessionContext, "plan"> {
  if (planId === null || planName === null || planFeatures === null) return {};
  return { plan: { id: planId, name: planName, features: [...planFeatures] } };
}
