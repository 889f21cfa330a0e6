import { Elysia } from "elysia";

import { platformService } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import type { RuleInput } from "../../http/rules.ts";
import { BODY_LIMIT } from "../provider-model.ts";
import { takeActions, type TakingDeps } from "../service-actions.ts";
import { actionErrors } from "../service-input.ts";
import { ActionsAnswer, ActionsBody } from "../service-model.ts";

/** Serves the route by which services record actions (contract 9.7). */
export function serviceActionRoutes(deps: TakingDeps & { readonly checks: Checks }) {
  return new Elysia({ prefix: `${BASE_PATH}/platform`, tags: ["Platform"] })
    .use(deps.checks)
    .post(
      "/actions",
      ({ principal, requestContext, body }) =>
        takeActions(deps, { principal, requestContext }, body.actions),
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
