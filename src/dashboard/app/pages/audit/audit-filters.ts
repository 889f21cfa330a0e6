import { idOf } from "../../ui/ids.ts";
import { instantOf } from "../../ui/instants.ts";

export const FILTERS = ["action", "actor", "company", "since", "until"] as const;
type Get = (name: (typeof FILTERS)[number]) => string | undefined;

export type AuditQuery = ReturnType<typeof auditQuery>;

/** Turns the words of the address into the API's query; what the API would refuse is left out. */
export function auditQuery(get: Get) {
  const action = get("action");
  const actorId = idOf(get("actor"));
  const companyId = idOf(get("company"));
  const since = instantOf(get("since"));
  const until = instantOf(get("until"));
  return {
    ...(action !== undefined && /^[A-Z_]{1,64}$/.test(action) && { action }),
    ...(actorId !== undefined && { actor_id: actorId }),
    ...(companyId !== undefined && { company_id: companyId }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  };
}
