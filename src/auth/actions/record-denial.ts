import type { Db } from "../../../db/client.ts";
import { recordAudit } from "../../audit/actions.ts";
import type { Call } from "../../http/call.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Principal } from "../../http/principal.ts";

/** Contract 3.5: a refusal by role, or of a record outside the caller's account, leaves an AUTHZ_DENIED row. */
export async function recordDenial(
  deps: { db: Db; clock: Clock },
  actor: Principal,
  { call, details }: { call: Call; details: Record<string, unknown> },
): Promise<void> {
  await recordAudit(deps.db, {
    at: deps.clock.now(),
    action: "AUTHZ_DENIED",
    actor,
    call,
    details,
  });
}
