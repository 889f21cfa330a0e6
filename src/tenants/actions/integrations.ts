import { ulid } from "ulid";

import type { Tx } from "../../../db/client.ts";
import type { AuditAction } from "../../audit/model.ts";
import { changeDetails } from "../../audit/changes.ts";
import { recordAudit } from "../../audit/queries.ts";
import { refuseExcess } from "../../auth/access/access-denied.ts";
import type { Authority } from "../../auth/access/authority.ts";
import { creating } from "../../auth/keyed-requests.ts";
import { endAccess } from "../../auth/sign-in/sessions.ts";
import type { TokenHolder } from "../../auth/tokens/dashboard-tokens.ts";
import { holdTenant } from "../../auth/user-queries.ts";
import { findRow } from "../../http/ids.ts";
import { type Caller, tenantOf } from "../../http/principal.ts";
import { Problem } from "../../lib/problem.ts";
import type { Integration, IntegrationUpdate, NewIntegration } from "../integration-model.ts";
import * as queries from "../queries/integrations.ts";
import { insertUser } from "../queries/users.ts";
import { type AdminDeps, existing, orNotFound } from "./deps.ts";

type IntegrationDeps = Pick<AdminDeps, "db" | "clock">;

/** The highest number of integrations that one partner may have (contract 3.7). */
const INTEGRATIONS_PER_PARTNER = 50;

/** Returns the authority that a caller needs to make, see, change or end an integration or its token. */
const authorityOfIntegration = (
  partnerId: number,
  { scopes }: Pick<Integration, "scopes">,
): Authority => ({ partnerId, accountId: null, scopes, thirdParty: null, inPerson: false });

/** Returns the integration as the holder of its token. */
export const holderOf = ({ id: userId, ...integration }: Integration): TokenHolder => ({
  userId,
  scopes: integration.scopes,
  integration,
});

/**
 * Finds an integration of the caller's partner. Throws 404 if there is none with this id. For one of another partner it
 * writes an AUTHZ_DENIED row into the audit log and throws `forbidden` (contract 3.9).
 */
export async function findIntegration(
  deps: IntegrationDeps,
  caller: Caller,
  id: string | undefined,
): Promise<Integration> {
  const one = await findRow(id, (rowId) => queries.integrationById(deps.db, rowId));
  await refuseExcess(deps, caller, authorityOfIntegration(one.companyId, one), { user_id: one.id });
  return one;
}

/**
 * Creates an integration, without a token. Its email is no address, so that nobody can type it and no mail can be sent
 * to it. Throws `limit_reached` above the limit of the partner.
 */
export async function createIntegration(
  deps: IntegrationDeps,
  caller: Caller,
  { name, scopes }: NewIntegration,
): Promise<Integration> {
  const companyId = tenantOf(caller.principal);
  await refuseExcess(deps, caller, authorityOfIntegration(companyId, { scopes }), { scopes });
  const now = deps.clock.now();
  const email = `integration:${ulid(now.getTime()).toLowerCase()}`;
  const role = "partner_integration";
  const user = { companyId, email, name, role, scopes, createdAt: now } as const;
  return creating(deps.db, caller, async (tx) => {
    await holdTenant(tx, companyId);
    if ((await queries.countIntegrations(tx, companyId)) >= INTEGRATIONS_PER_PARTNER)
      throw new Problem("limit_reached");
    const none = { passwordHash: null, externalId: null, storeIds: [] };
    const id = await insertUser(tx, { ...user, ...none });
    await audit(tx, caller, { action: "INTEGRATION_CREATED", id, now });
    return existing(await queries.integrationById(tx, id));
  });
}

/**
 * Changes an integration. From the next request on, its token is limited to the new scopes. An added scope applies only
 * to a token that is issued afterwards.
 */
export async function updateIntegration(
  deps: IntegrationDeps,
  caller: Caller,
  { id, companyId, ...old }: Integration,
  body: IntegrationUpdate,
): Promise<Integration> {
  const wanted = authorityOfIntegration(companyId, { ...old, ...body });
  await refuseExcess(deps, caller, wanted, { user_id: id });
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const before = orNotFound(await queries.lockIntegration(tx, id));
    const fields = Object.keys(body);
    if (fields.length === 0) return before;
    const { name = before.name, scopes = before.scopes } = body;
    await queries.updateIntegration(tx, id, { name, scopes, updatedAt: now });
    const after = existing(await queries.integrationById(tx, id));
    const more = changeDetails(fields, before, after);
    await audit(tx, caller, { action: "INTEGRATION_UPDATED", id, now, more });
    return after;
  });
}

/** Deletes an integration, and revokes its token and every token that was made with it. */
export async function deleteIntegration(
  { db, clock }: IntegrationDeps,
  caller: Caller,
  { id, name }: Integration,
): Promise<void> {
  const now = clock.now();
  await db.transaction(async (tx) => {
    if (!(await queries.endIntegration(tx, id, now))) throw new Problem("not_found");
    const more = { name, revoked: await endAccess(tx, [id], now) };
    await audit(tx, caller, { action: "INTEGRATION_DELETED", id, now, more });
  });
}

interface Audited {
  readonly action: AuditAction;
  readonly id: number;
  readonly now: Date;
  readonly more?: Readonly<Record<string, unknown>>;
}

async function audit(
  tx: Tx,
  { principal: actor, requestContext }: Caller,
  { action, id, now: at, more }: Audited,
): Promise<void> {
  await recordAudit(tx, { at, action, actor, requestContext, details: { user_id: id, ...more } });
}
