import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/access.ts";
import type { Checks, Received } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import {
  createIngestDeps,
  hasSignature,
  type IngestDeps,
  takeEvents,
} from "../provider-actions.ts";
import { providerEventsBody } from "../provider-input.ts";
import { AcceptedAnswer, BODY_LIMIT } from "../provider-model.ts";

/** Serves the route that accepts the events that pullers of review sites report (contract 9.1). */
export function providerRoutes(deps: IngestDeps & { readonly checks: Checks }) {
  const reporting = createIngestDeps(deps);
  const { signatures } = reporting;
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
          // Elysia's type inference fails on the route if these parameters have no explicit types.
          verify: (signed: Received) => signatures.verify(signed.params["provider"] ?? "", signed),
          verifyAgain: (signed: Received) =>
            signatures.verifyAgain(signed.params["provider"] ?? "", signed),
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
