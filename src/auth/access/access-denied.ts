import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/queries.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { type Authority, excessOf } from "./authority.ts";

/**
 * Writes an AUTHZ_DENIED row to the audit log (contract 3.5). Access is denied because of the caller's role, scope,
 * kind of token or tenant.
 */
export async function recordAccessDenied(
  deps: { db: Db; clock: Clock },
  actor: Principal,
  { requestContext, details }: { requestContext: RequestContext; details: Record<string, unknown> },
): Promise<void> {
  await recordAudit(deps.db, {
    at: deps.clock.now(),
    action: "AUTHZ_DENIED",
    actor,
    requestContext,
    details,
  });
}

/**
 * Throws a 403 and audits AUTHZ_DENIED if `made` exceeds the authority of the caller (contract 3.9). `made` is the
 * authority of the object that the caller wants to create, change or see, for example a token or an OAuth client.
 */
export async function refuseExcess(
  deps: { readonly db: Db; readonly clock: Clock },
  { principal, requestContext }: Caller,
  made: Authority,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const reason = excessOf(principal, made);
  if (reason === undefined) return;
  await recordAccessDenied(deps, principal, { requestContext, details: { ...details, reason } });
  throw new Problem(reason);
}
