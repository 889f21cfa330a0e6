import type { Static } from "@sinclair/typebox";

import type { Db } from "../../../db/client.ts";
import { holdCaller } from "../../auth/actions/open-session.ts";
import { hasFactor } from "../../auth/actions/second-step.ts";
import { recordAudit } from "../../auth/queries/audit.ts";
import type { Caller } from "../../http/principal.ts";
import type { Clock } from "../../lib/clock.ts";
import { Problem } from "../../lib/problem.ts";
import type { SecurityBody, SecurityObject } from "../security-model.ts";
import { requiresSecondFactor, updateCompany } from "../queries/companies.ts";

export interface SecurityDeps {
  readonly db: Db;
  readonly clock: Clock;
}

/**
 * Changes what a company requires of its people. An Owner who requires a second factor must have one, or have signed in
 * through an identity provider, so that the requirement does not shut its own maker out.
 */
export async function changeSecurity(
  { db, clock }: SecurityDeps,
  { principal: actor, requestContext }: Caller,
  { require_second_factor: to }: Static<typeof SecurityBody>,
): Promise<Static<typeof SecurityObject>> {
  const at = clock.now();
  const { companyId, userId, signInMethod } = actor;
  return db.transaction(async (tx) => {
    await holdCaller(tx, actor);
    if (to && signInMethod !== "sso" && !(await hasFactor(tx, userId)))
      throw new Problem("no_second_factor");
    const from = await requiresSecondFactor(tx, companyId);
    if (from !== to) {
      await updateCompany(tx, companyId, { requireSecondFactor: to });
      const changes = { require_second_factor: { from, to } };
      const details = { company_id: companyId, changes };
      const action = "SECOND_FACTOR_POLICY";
      await recordAudit(tx, { at, action, actor, requestContext, details });
    }
    return { require_second_factor: to };
  });
}
