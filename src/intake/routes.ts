import { Elysia } from "elysia";

import type { Db } from "../../db/client.ts";
import { recordAccessDenied } from "../auth/access/access-denied.ts";
import { platformService } from "../auth/access/guard.ts";
import { BASE_PATH } from "../http/access.ts";
import type { Checks, Received } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { join } from "../http/join.ts";
import type { RuleInput } from "../http/rules.ts";
import type { Clock } from "../lib/clock.ts";
import { refusalOf } from "./change.ts";
import { createIntake, type IntakeDeps, type Intake } from "./group-commit.ts";
import {
  createIngestDeps,
  hasSignature,
  type IngestDeps,
  acceptEvents,
} from "./provider-actions.ts";
import { providerEventsBody } from "./provider-input.ts";
import { AcceptedAnswer, BODY_LIMIT } from "./provider-model.ts";
import { accountActionRoutes } from "./account-routes.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import { actionErrors, serviceRequest } from "./service-input.ts";
import { ActionsAnswer, ActionsBody } from "./service-model.ts";

type Deps = Omit<
  IntakeDeps &
    Parameters<typeof providerRoutes>[0] &
    Parameters<typeof accountActionRoutes>[0] &
    Parameters<typeof inboxRoutes>[0],
  "intake"
>;

/** Serves the routes through which review sites, services and accounts record actions. They share one group commit. */
export function intakeRoutes(given: Deps) {
  const deps = { ...given, intake: createIntake(given) };
  return join(
    providerRoutes(deps),
    accountActionRoutes(deps),
    serviceActionRoutes(deps),
    inboxRoutes(deps),
  );
}

/** Serves the route that accepts the events that pullers of review sites report (contract 9.1). */
function providerRoutes(deps: IngestDeps & { readonly checks: Checks }) {
  const reporting = createIngestDeps(deps);
  const { signatures } = reporting;
  return new Elysia({ prefix: `${BASE_PATH}/providers`, tags: ["Review sites"] })
    .use(deps.checks)
    .post(
      "/:provider/events",
      ({ params, body, requestContext, raw }) =>
        acceptEvents(reporting, params.provider, { requestContext, raw, body }),
      {
        public: {
          bodyLimit: BODY_LIMIT,
          // No rate limit counts these requests, because review sites may report at any rate (contract 2.9).
          isUncounted: true,
          mayVerify: hasSignature,
          // Elysia's type inference fails for this route unless these parameters have explicit types.
          verify: (signed: Received) => signatures.verify(signed.params["provider"] ?? "", signed),
          verifyAgain: (signed: Received) =>
            signatures.verifyAgain(signed.params["provider"] ?? "", signed),
        },
        body: providerEventsBody,
        response: { 200: AcceptedAnswer, 401: errorResponse("invalid_signature") },
        detail: {
          operationId: "reportProviderEvents",
          summary: "Report reviews, postings and connections of a review site",
          description:
            "All events are accepted or none. A known `id` is a duplicate and changes nothing. With `X-Provider-Timestamp` (Unix seconds) the signature covers `<timestamp>.<body>`, and the timestamp must be within 5 minutes of our clock.",
          security: [{ provider: [] }],
          // Removed by `describeOperation`, which leaves out the response 429.
          "x-uncounted": true,
        },
      },
    );
}

interface ServiceDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly intake: Intake;
  readonly checks: Checks;
}

/**
 * Serves the route through which services record actions (contract 9.7). A request with an action for a partner for
 * which the service does not act is denied, and the denial is audited.
 */
function serviceActionRoutes(deps: ServiceDeps) {
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
      access: { ...platformService("actions:write"), bodyLimit: BODY_LIMIT },
      body: ActionsBody,
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
