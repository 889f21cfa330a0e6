import type { Db } from "../../db/client.ts";
import { recordAccessDenied } from "../auth/actions/access-denied.ts";
import type { Caller } from "../http/principal.ts";
import type { Clock } from "../lib/clock.ts";
import { refusalOf } from "./change.ts";
import type { Intake } from "./group-commit.ts";
import { serviceRequest } from "./service-input.ts";
import type { Action } from "./service-model.ts";

export interface TakingDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly intake: Intake;
}

/**
 * Takes valid actions of a service, all or none (contract 9.7). Actions with known ids are left out. Throws
 * `validation_failed` with the fields that name something that does not exist or fit, and `forbidden` if the service does
 * not act for one of the partners.
 */
export async function takeActions(
  deps: TakingDeps,
  { principal, requestContext }: Caller,
  actions: readonly Action[],
): Promise<{ accepted: number; unchanged: number; duplicates: number }> {
  const { userId: serviceId, actsForPartners } = principal;
  const service = { serviceId, actsForPartners };
  const answer = await deps.intake(serviceRequest(service, actions, deps.clock.now()));
  if (answer.kind === "foreign") {
    const details = { reason: "foreign_partner", partner_ids: answer.partnerIds };
    await recordAccessDenied(deps, principal, { requestContext, details });
  }
  if (answer.kind !== "accepted") throw refusalOf(answer);
  const { accepted, unchanged } = answer;
  return { accepted, unchanged, duplicates: actions.length - accepted };
}
