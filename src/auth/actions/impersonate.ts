import { ulid } from "ulid";

import type { Db, Tx } from "../../../db/client.ts";
import { recordAudit } from "../queries/audit.ts";
import { creating } from "./keyed-requests.ts";
import type { RuleErrors } from "../../http/rules.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Config } from "../../lib/config.ts";
import { invalid, Problem } from "../../lib/problem.ts";
import { authorityOf, excessOf } from "../authority.ts";
import type { KeyRing } from "../key-ring.ts";
import { insertAuthenticationEvent } from "../queries/sign-in.ts";
import { findAccountWithOwner, holdUser } from "../queries/users.ts";
import type { ImpersonationAnswer, ImpersonationBody } from "../token-model.ts";
import { holdCaller, type IssuedToken, issueToken, readContext } from "./open-session.ts";
import { recordAccessDenied } from "./access-denied.ts";

export interface ImpersonateDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly keys: KeyRing;
  readonly config: Pick<Config, "accessTokenTtlS">;
}

interface Owner {
  readonly userId: number;
  readonly companyId: number;
}

/**
 * Handles `POST /partner/account-owner/token` (contract 4.20): issues a token that acts as the owner of one of the
 * partner's accounts.
 */
export async function impersonateOwner(
  deps: ImpersonateDeps,
  caller: Caller,
  { account_id, reason }: ImpersonationBody,
): Promise<ImpersonationAnswer> {
  const owner = await findOwner(deps, caller, account_id);
  const now = deps.clock.now();
  const { token, context } = await creating(deps.db, caller, async (tx) => {
    // Users are locked before tokens, as in every transaction that revokes tokens, so that two such transactions
    // cannot deadlock.
    if (!(await holdUser(tx, owner.userId))) throw noOwner();
    await holdCaller(tx, caller.principal);
    const issued = await start(tx, deps, { caller, owner, now, reason });
    return { token: issued.token, context: (await readContext(tx, owner.userId)).context };
  });
  const { userId: impersonator_id } = caller.principal;
  return {
    access_token: token,
    token_type: "Bearer",
    expires_in: deps.config.accessTokenTtlS,
    user: context.user,
    company: context.company,
    acting_as: { user_id: owner.userId, account_id, impersonator_id },
  };
}

/**
 * Returns the validation error for an account that has no active owner to act as. If the account is missing or
 * belongs to another partner, this function reports nothing, because the action answers 404 or 403.
 */
export async function accountErrors(
  { db }: Pick<ImpersonateDeps, "db">,
  { partnerId }: Principal,
  accountId: number | undefined,
): Promise<RuleErrors> {
  const account = accountId === undefined ? undefined : await findAccountWithOwner(db, accountId);
  if (account === undefined || account.partnerId !== partnerId) return {};
  const canAct = account.ownerId !== null && account.isActive;
  return { account_id: canAct ? undefined : NO_OWNER };
}

/**
 * Finds the owner of the account. Throws 404 for a missing account, 403 with an AUTHZ_DENIED row for an account of
 * another partner, and 422 for an account without an active owner (contract 4).
 */
async function findOwner(
  deps: Pick<ImpersonateDeps, "db" | "clock">,
  { principal, requestContext }: Caller,
  accountId: number,
): Promise<Owner> {
  const account = await findAccountWithOwner(deps.db, accountId);
  if (account === undefined) throw new Problem("not_found");
  const made = { ...authorityOf(principal), partnerId: account.partnerId, accountId };
  if (excessOf(principal, made) !== undefined) {
    const details = { account_id: accountId, reason: "foreign_record" };
    await recordAccessDenied(deps, principal, { requestContext, details });
    throw new Problem("forbidden");
  }
  if (account.ownerId === null || !account.isActive) throw noOwner();
  return { userId: account.ownerId, companyId: account.id };
}

const NO_OWNER = "is an account without an active owner";

function noOwner(): Problem {
  return invalid({ account_id: [NO_OWNER] });
}

/**
 * Issues the impersonation token. The token has at most the scopes of the caller's token, and it ends when that token
 * or its client ends.
 */
async function start(
  tx: Tx,
  { keys, config }: ImpersonateDeps,
  session: { caller: Caller; owner: Owner; now: Date; reason: string | undefined },
): Promise<IssuedToken> {
  const { caller, owner, now, reason } = session;
  const { userId: impersonatorId, jti: parentJti, clientId, scopes } = caller.principal;
  const { ip, userAgent } = caller.requestContext;
  const familyId = ulid(now.getTime());
  const { userId } = owner;
  const event = { id: familyId, userId, method: "impersonation", clientId, ip, userAgent } as const;
  await insertAuthenticationEvent(tx, { ...event, at: now });
  const issued = await issueToken(tx, keys, {
    kind: "impersonation",
    userId,
    familyId,
    clientId,
    impersonatorId,
    parentJti,
    now,
    scope: [...scopes].join(" "),
    ttlS: config.accessTokenTtlS,
  });
  await recordAudit(tx, {
    at: now,
    action: "IMPERSONATION_STARTED",
    actor: { ...owner, impersonatorId },
    requestContext: caller.requestContext,
    details: { jti: issued.jti, reason: reason ?? null },
  });
  return issued;
}
