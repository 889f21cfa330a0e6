import { Elysia } from "elysia";

import type { FailureAudit } from "../auth/audit-failures.ts";
import { BASE_PATH } from "../http/access.ts";
import type { RequestContext } from "../http/request-context.ts";
import type { Checks } from "../http/checks.ts";
import { errorResponse } from "../http/errors.ts";
import { createIngestDeps, createSignatures, hasSignature, takeEvents } from "./actions.ts";
import type { ProviderDeps } from "./batch.ts";
import { providerEventsBody } from "./input.ts";
import { AcceptedAnswer, BODY_LIMIT } from "./model.ts";

interface ProviderRouteDeps extends ProviderDeps {
  readonly checks: Checks;
  readonly failures: FailureAudit;
}

/**
 * A request with the bytes that were signed. Elysia's type inference fails on the route if this parameter has no
 * explicit type.
 */
interface SignedRequest {
  readonly requestContext: RequestContext;
  readonly params: Readonly<Record<string, string>>;
  readonly raw: Uint8Array;
}

/** Serves the route that accepts the events that pullers of review sites report (contract 9.1). */
export function providerRoutes(deps: ProviderRouteDeps) {
  const signatures = createSignatures(deps);
  const reporting = createIngestDeps(deps, signatures);
  return new Elysia({ prefix: `${BASE_PATH}/providers`, tags: ["Review sites"] })
    .use(deps.checks)
    .post(
      "/:provider/events",
      ({ params, body, requestContext, raw }) =>
        takeEvents(reporting, params.provider, { requestContext, raw, body }),
      {
        public: {
          bodyLimit: BODY_LIMIT,
          mayVerify: hasSignature,
          verify: ({ params, ...signed }: SignedRequest) =>
            signatures.verify(params["provider"] ?? "", signed),
          verifyAgain: ({ params, ...signed }: SignedRequest) =>
            signatures.verifyAgain(params["provider"] ?? "", signed),
        },
        // Exempts the route from the rate limits, because review sites may report at any rate (contract 2.9).
        uncounted: true,
        body: providerEventsBody,
        response: { 200: AcceptedAnswer, 401: errorResponse("invalid_signature") },
        detail: {
          operationId: "reportProviderEvents",
          summary: "Report reviews, postings and connections of a review site",
          description:
            "All events are accepted or none. A known `id` is a duplicate and changes nothing. With `X-Provider-Timestamp` (Unix seconds) the signature covers `<timestamp>.<body>`, and the timestamp must be within 5 minutes of our clock.",
          security: [{ provider: [] }],
        },
      },
    );
}
