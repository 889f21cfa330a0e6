import type { Db } from "../../../db/client.ts";
import { recordAudit } from "./audit.ts";
import type { RequestContext } from "../../http/request-context.ts";
import type { Caller, Principal } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { type Authority, excessOf } from "../authority.ts";

/** Contract 3.5: a refusal by role, or of a record outside the caller's account, leaves an AUTHZ_DENIED row. */
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

/** Refuses, with an AUTHZ_DENIED row, to make or touch what could do more than the caller (contract 3.9). */
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
