import { Elysia } from "elysia";

import type { Db } from "../../../db/client.ts";
import { recordAccessDenied } from "../../auth/actions/access-denied.ts";
import { platformService } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import type { RuleInput } from "../../http/rules.ts";
import type { Clock } from "../../lib/clock.ts";
import { refusalOf } from "../change.ts";
import type { Intake } from "../group-commit.ts";
import { BODY_LIMIT } from "../provider-model.ts";
import { actionErrors, serviceRequest } from "../service-input.ts";
import { ActionsAnswer, ActionsBody } from "../service-model.ts";

interface Deps {
  readonly db: Db;
  readonly clock: Clock;
  readonly intake: Intake;
  readonly checks: Checks;
}

/**
 * Serves the route by which services record actions (contract 9.7). A request that names an action of a partner for whom
 * the service does not act is forbidden, which is audited.
 */
export function serviceActionRoutes(deps: Deps) {
  return new Elysia({ prefix: `${BASE_PATH}/platform`, tags: ["Platform"] }).use(deps.checks).post(
    "/actions",
    async ({ principal, requestContext, body: { actions } }) => {
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
    },
    {
      access: platformService("actions:write"),
      body: ActionsBody,
      largeBody: BODY_LIMIT,
      rules: ({ body }: RuleInput<typeof ActionsBody>) => actionErrors(deps, body.actions),
      response: { 200: ActionsAnswer },
      detail: {
        operationId: "recordActions",
        summary: "Record actions on reviews and connections",
        description:
          "All or none. Each that changes something is written to the history and queued for webhooks like an action at this API.",
      },
    },
  );
}
