import type { Db, Tx } from "../../../db/client.ts";
import type { AuditAction } from "../../audit/model.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import { shown } from "../../http/shown.ts";
import { type Clock, isoInstant } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecretBox } from "../../lib/secrets.ts";
import { creating } from "../keyed-requests.ts";
import type { KeyRing } from "../keys/key-ring.ts";
import { holdCaller, issueToken, sealedTokenContext } from "../sign-in/open-session.ts";
import {
  mailAboutIntegration,
  mailAboutToken,
  type SecurityMailDeps,
} from "../sign-in/security-mails.ts";
import { holdUser } from "../user-queries.ts";
import { type DashboardTokenAnswer, dashboardTokenAnswer } from "./model.ts";
import { type DashboardToken, deleteToken, findDashboardToken, holdToken } from "./queries.ts";

interface DashboardTokenDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly box: SecretBox;
  readonly keys: KeyRing;
  readonly config: SecurityMailDeps["config"];
}

const KIND = "dashboard_pat";

/** The user who holds a dashboard token: the caller (contract 4.18), or an integration (contract 10.10). */
export interface TokenHolder {
  readonly userId: number;
  readonly scopes: readonly string[];
  /** Present if the holder is an integration, which gets no mail: its owners do. */
  readonly integration?: { readonly name: string; readonly companyId: number };
}

/** Returns the caller as the holder of a dashboard token, which has all scopes. */
export const ownHolder = ({ userId }: Principal): TokenHolder => ({ userId, scopes: ["*"] });

/** Shows the dashboard token of the holder again. The audit log records this as TOKEN_VIEWED. Throws 404 without one. */
export async function viewDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
  holder: TokenHolder,
): Promise<DashboardTokenAnswer> {
  const { userId } = holder;
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const row = await requireDashboardToken(tx, userId);
    await audit(tx, caller, holder, { action: "TOKEN_VIEWED", jti: row.jti, now });
    const token = deps.box.open(row.sealedToken, sealedTokenContext({ jti: row.jti, userId }));
    return shown(dashboardTokenAnswer, {
      token,
      createdAt: row.issuedAt,
      lastUsedAt: row.lastUsedAt,
    });
  });
}

/** Returns when the user's dashboard token was created and last used, or null if the user has none. */
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

/** Creates the dashboard token of the holder, who has at most one. Throws `token_exists` if there is one. */
export async function makeDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
  holder: TokenHolder,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return creating(deps.db, caller, async (tx) => {
    const held = await hold(tx, caller, holder);
    if ((await findDashboardToken(tx, holder.userId)) !== undefined)
      throw new Problem("token_exists");
    return issue(tx, deps, caller, { holder: held, now });
  });
}

/**
 * Replaces the dashboard token in one transaction: the old token stops working at the commit that creates the new one
 * (contract 4.18). Throws 404 without a token.
 */
export async function regenerateDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
  holder: TokenHolder,
): Promise<DashboardTokenAnswer> {
  const now = deps.clock.now();
  return deps.db.transaction(async (tx) => {
    const held = await hold(tx, caller, holder);
    await revoke(tx, caller, { holder, now });
    return issue(tx, deps, caller, { holder: held, now });
  });
}

/** Revokes the dashboard token of the holder. Throws 404 without a token. */
export async function deleteDashboardToken(
  deps: DashboardTokenDeps,
  caller: Caller,
  holder: TokenHolder,
): Promise<void> {
  const now = deps.clock.now();
  await deps.db.transaction(async (tx) => {
    await hold(tx, caller, holder);
    await revoke(tx, caller, { holder, now });
  });
}

/**
 * Locks the holder and the caller's token until the commit, so that no token is issued to a user, or by a caller, whose
 * access is being ended. Returns the holder with the scopes that it has then.
 */
async function hold(tx: Tx, { principal }: Caller, holder: TokenHolder): Promise<TokenHolder> {
  if (holder.integration === undefined) {
    await holdCaller(tx, principal);
    return holder;
  }
  const user = await holdUser(tx, holder.userId);
  if (user === undefined) throw new Problem("not_found");
  if (!(await holdToken(tx, principal.jti))) throw new Problem("unauthenticated");
  return { ...holder, scopes: user.scopes ?? holder.scopes };
}

async function requireDashboardToken(tx: Tx, userId: number): Promise<DashboardToken> {
  const row = await findDashboardToken(tx, userId);
  if (row === undefined) throw new Problem("not_found");
  return row;
}

interface Change {
  readonly holder: TokenHolder;
  readonly now: Date;
}

async function revoke(tx: Tx, caller: Caller, { holder, now }: Change): Promise<void> {
  const { jti } = await requireDashboardToken(tx, holder.userId);
  await deleteToken(tx, jti);
  await audit(tx, caller, holder, { action: "TOKEN_REVOKED", jti, now });
}

async function issue(
  tx: Tx,
  deps: DashboardTokenDeps,
  caller: Caller,
  { holder, now }: Change,
): Promise<DashboardTokenAnswer> {
  const { keys, box } = deps;
  const { userId, scopes, integration } = holder;
  const alone = { familyId: null, clientId: null, impersonatorId: null, ttlS: null };
  const grant = { kind: KIND, userId, ...alone, scope: scopes.join(" "), now, box } as const;
  const { token, jti } = await issueToken(tx, keys, grant);
  await audit(tx, caller, holder, { action: "TOKEN_ISSUED", jti, now });
  await (integration === undefined
    ? mailAboutToken(tx, deps, { userId, name: "of the dashboard", now })
    : mailAboutIntegration(tx, deps, { integration, actor: caller.principal, now }));
  return shown(dashboardTokenAnswer, { token, createdAt: now, lastUsedAt: null });
}

async function audit(
  tx: Tx,
  { principal: actor, requestContext }: Caller,
  { userId, integration }: TokenHolder,
  { action, jti, now }: { action: AuditAction; jti: string; now: Date },
): Promise<void> {
  const details = { kind: KIND, jti, ...(integration && { user_id: userId }) };
  await recordAudit(tx, { at: now, action, actor, requestContext, details });
}
