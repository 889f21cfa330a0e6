import type { Db } from "../../../db/client.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import { excessOf, type Authority } from "../authority.ts";
import { recordDenial } from "./record-denial.ts";

/** Refuses, with an AUTHZ_DENIED row, to make or touch what could do more than the caller (contract 3.9). */
export async function refuseExcess(
  deps: { readonly db: Db; readonly clock: Clock },
  { principal, call }: Caller,
  made: Authority,
  details: Readonly<Record<string, unknown>>,
): Promise<void> {
  const reason = excessOf(principal, made);
  if (reason === undefined) return;
  await recordDenial(deps, principal, { call, details: { ...details, reason } });
  throw new Problem(reason);
}
