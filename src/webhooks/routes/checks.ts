import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { loads } from "../../http/request-state.ts";
import { shown } from "../../http/shown.ts";
import { requestCheck, showCheck } from "../actions/checks.ts";
import { CheckReport, RequestedCheck } from "../check-model.ts";
import {
  type Audience,
  readableSubscription,
  readingBase,
  webhookRoutesBase,
  type WebhookRouteDeps,
  writing,
} from "./base.ts";

/** Serves the route that requests a check of the endpoint (contract 6.23). */
export function checkRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps).post(
    "/:id/check",
    async ({ principal, requestContext, subscription, status }) =>
      status(202, {
        check_id: await requestCheck(deps, { principal, requestContext }, subscription),
      }),
    {
      access: writing,
      subscription: true,
      body: NO_FIELDS,
      response: { 202: RequestedCheck, 409: errorResponse("subscription_disabled") },
      detail: {
        operationId: "checkEndpoint",
        summary: "Check the endpoint",
        description:
          "Sends up to ten valid and forged tests, each once, without a record. Returns the id of an open check, if there is one. A partner may begin 10 checks in an hour.",
      },
    },
  );
}

/** Serves the report of a check, to partners and operators (contract 6.23 and 10.3). */
export function checkReadRoutes<const L extends string, const O extends string>(
  deps: WebhookRouteDeps,
  audience: Audience<L, O>,
) {
  const { access, describe } = audience;
  return readingBase(deps, audience)
    .macro(
      loads("report", async ({ params, ...caller }) =>
        showCheck(
          deps,
          await readableSubscription(deps, audience, caller, params),
          params["checkId"] ?? "",
        ),
      ),
    )
    .get("/check/:checkId", ({ report }) => shown(CheckReport, report), {
      access,
      report: true,
      response: { 200: CheckReport },
      detail: describe({
        operationId: "getEndpointCheck",
        summary: "Get the report of a check",
        description: "Repeat it until `state` is `done` or `interrupted`, at most five minutes.",
      }),
    });
}
