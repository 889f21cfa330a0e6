import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import type { AuditAction } from "../audit-model.ts";
import { creating } from "./keyed-requests.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { shown } from "../../http/shown.ts";
import { type Clock, isoInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secret-box.ts";
import type { KeyRing } from "../key-ring.ts";
import { deleteToken, findDashboardToken, type DashboardToken } from "../queries/tokens.ts";
import { type DashboardTokenAnswer, dashboardTokenAnswer } from "../token-model.ts";
import { type SecurityMailDeps, tellOfToken } from "./security-mails.ts";
import { holdCaller, issueToken, sealedTokenContext } from "./open-session.ts";

export interface DashboardTokenDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly config: SecurityMailDeps["config"];
}

const KIND = "dashboard_pat";

/**
 * Handles `GET /account/api-token`, which shows the user's dashboard token again. The audit log records this as
 * TOKEN_VIEWED.
 */
export async function viewDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const { userId } = caller.principal;
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const row = await present(tx, userId);
    await audit(tx, caller, { action: "TOKEN_VIEWED", jti: row.jti, now });
    const token = deps.box.open(row.sealedToken, sealedTokenContext({ jti: row.jti, userId }));
    return shown(dashboardTokenAnswer, {
      token,
      createdAt: row.issuedAt,
      lastUsedAt: row.lastUsedAt,
    });
  });
}

/** Reads when the user's dashboard token was made and last used; null without one. */
export async function describeDashboardToken(
  { db }: Pick<DashboardTokenDeps, "db">,
  { userId }: Principal,
) {
  const row = await findDashboardToken(db, userId);
  return row === undefined
    ? null
    : {
        created_at: isoInstant(row.issuedAt),
        last_used_at: row.lastUsedAt && isoInstant(row.lastUsedAt),
      };
}

/** Handles `POST /account/api-token`: creates the user's dashboard token, of which a user has at most one. */
export async function makeDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return creating(deps.db, caller, async (tx) => {
    await holdCaller(tx, caller.principal);
    if ((await findDashboardToken(tx, caller.principal.userId)) !== undefined)
      throw new Problem("token_exists");
    return issue(tx, deps, caller, now);
  });
}

/**
 * Replaces the dashboard token in one transaction: the old token stops working at the commit that creates the new one
 * (contract 4.2).
 */
export async function regenerateDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    await holdCaller(tx, caller.principal);
    await revoke(tx, caller, now);
    return issue(tx, deps, caller, now);
  });
}

export async function deleteDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await holdCaller(tx, caller.principal);
    await revoke(tx, caller, now);
  });
}

async function present(tx: Tx, userId: number): Promise<DashboardToken> {
  const row = await findDashboardToken(tx, userId);
  if (row === undefined) throw new Problem("not_found");
  return row;
}

async function revoke(tx: Tx, caller: Caller, now: Date): Promise<void> {
  const { jti } = await present(tx, caller.principal.userId);
  await deleteToken(tx, jti);
  await audit(tx, caller, { action: "TOKEN_REVOKED", jti, now });
}

async function issue(
  tx: Tx,
  deps: DashboardTokenDeps,
  caller: Caller,
  now: Date,
): Promise<DashboardTokenAnswer> {
  const { keys, box } = deps;
  const { userId } = caller.principal;
  const alone = { familyId: null, clientId: null, impersonatorId: null, ttlS: null };
  const grant = { kind: KIND, userId, ...alone, scope: "*", now, box } as const;
  const { token, jti } = await issueToken(tx, keys, grant);
  await audit(tx, caller, { action: "TOKEN_ISSUED", jti, now });
  await tellOfToken(tx, deps, { userId, name: "of the dashboard", now });
  return shown(dashboardTokenAnswer, { token, createdAt: now, lastUsedAt: null });
}

async function audit(
  tx: Tx,
  { principal: actor, requestContext }: Caller,
  { action, jti, now }: { action: AuditAction; jti: string; now: Date },
): Promise<void> {
  await recordAudit(tx, { at: now, action, actor, requestContext, details: { kind: KIND, jti } });
}
