import { Type } from "@sinclair/typebox";

import { inPerson, withStepUp } from "../../auth/access/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { errorResponse } from "../../http/errors.ts";
import { TEST_EVENT } from "../../outbox/event.ts";
import { BY_HAND, disableSubscription, enableSubscription } from "../actions/state.ts";
import { deleteSubscription } from "../actions/subscriptions.ts";
import { sendTest } from "../actions/queue-events.ts";
import { endPreviousSecret, rotateSecret, showSecret } from "../actions/secrets.ts";
import { QueuedEventAnswer } from "../delivery-model.ts";
import {
  DISABLED_BY_OPERATOR,
  EnableBody,
  EnabledSubscription,
  OperatorDeleteQuery,
  OperatorDisableBody,
  OperatorEnableBody,
  RotateBody,
  RotatedSubscription,
  showSecretForms,
  showSubscription,
  SubscriptionObject,
  SubscriptionSecretAnswer,
  TestBody,
} from "../model.ts";
import {
  OPERATORS,
  readingBase,
  revealing,
  webhookRoutesBase,
  writing,
  type WebhookRouteDeps,
} from "./base.ts";

/** Serves the routes that rotate and show the signing secret and end the grace period of a rotation (contract 6.11). */
export function secretRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps)
    .post(
      "/:id/rotate-secret",
      async ({ principal, requestContext, subscription, body }) => {
        const hours = body.grace_period_hours ?? 0;
        const rotated = await rotateSecret(
          deps,
          { principal, requestContext },
          subscription,
          hours,
        );
        return {
          ...showSubscription(rotated.subscription),
          ...showSecretForms(rotated.secret, rotated.subscription),
          check_url: `${deps.config.serverRoot}${BASE_PATH}/partner/webhooks/${subscription.id}/check`,
        };
      },
      {
        access: { ...revealing, mayBeEmpty: true },
        subscription: true,
        body: RotateBody,
        response: { 200: RotatedSubscription },
        detail: {
          operationId: "rotateSecret",
          summary: "Rotate the signing secret",
          description:
            "All following attempts are signed with the new secret. During a grace period, deliveries also carry `X-SVC-Signature-Previous`, which is computed with the previous secret.",
        },
      },
    )
    .delete(
      "/:id/previous-secret",
      async ({ principal, requestContext, subscription, status }) => {
        await endPreviousSecret(deps, { principal, requestContext }, subscription);
        return status(204, undefined);
      },
      {
        access: writing,
        subscription: true,
        response: { 204: Type.Void() },
        detail: {
          operationId: "endPreviousSecret",
          summary: "End the grace period of a rotation",
          description: "From the next attempt on, deliveries have `X-SVC-Signature` only.",
        },
      },
    )
    .post(
      "/:id/secret",
      ({ principal, requestContext, subscription }) =>
        showSecret(deps, { principal, requestContext }, subscription),
      {
        access: revealing,
        subscription: true,
        body: NO_FIELDS,
        response: { 200: SubscriptionSecretAnswer },
        detail: {
          operationId: "showSecret",
          summary: "Show the current secret",
          description: "Each request is recorded in the audit log.",
        },
      },
    );
}

/** Serves the route that queues a test event (contract 6.12). */
export function testRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps).post(
    "/:id/test",
    async ({ principal, requestContext, subscription, body: { event = TEST_EVENT }, status }) => {
      const eventId = await sendTest(deps, { principal, requestContext }, subscription, event);
      return status(202, { event_id: eventId });
    },
    {
      access: { ...writing, mayBeEmpty: true },
      subscription: true,
      body: TestBody,
      response: { 202: QueuedEventAnswer, 409: errorResponse("subscription_disabled") },
      detail: {
        operationId: "sendTest",
        summary: "Send a test event",
        description:
          "Queues `event` with sample values, or a `webhook.test` if `event` is absent. The test is signed, retried and recorded like other events, is sent independently of them, and has the header `X-SVC-Test: 1`.",
      },
    },
  );
}

/** Serves the routes that enable and disable a subscription (contract 6.16). */
export function stateRoutes(deps: WebhookRouteDeps) {
  return webhookRoutesBase(deps)
    .post(
      "/:id/enable",
      async ({
        principal,
        requestContext,
        subscription,
        body: { held = "deliver", test = false },
      }) => {
        const enabled = await enableSubscription(
          deps,
          { principal, requestContext },
          subscription,
          { held, test },
        );
        return {
          ...showSubscription(enabled.subscription),
          ...(enabled.testEventId !== null && { test_event_id: enabled.testEventId }),
        };
      },
      {
        access: { ...writing, mayBeEmpty: true },
        subscription: true,
        body: EnableBody,
        response: {
          200: EnabledSubscription,
          409: errorResponse("disabled_by_operator", "company_inactive"),
        },
        detail: {
          operationId: "enableSubscription",
          summary: "Enable a disabled subscription",
          description:
            "Resets the count of failures to 0. Held events are delivered in order, or skipped, as `held` says. With `test`, a test event is sent first: a 2xx response enables the subscription, any other result leaves it disabled.",
        },
      },
    )
    .post(
      "/:id/disable",
      async ({ principal, requestContext, subscription }) =>
        showSubscription(
          await disableSubscription(deps, { principal, requestContext }, subscription, BY_HAND),
        ),
      {
        access: writing,
        subscription: true,
        body: NO_FIELDS,
        response: { 200: SubscriptionObject },
        detail: {
          operationId: "disableSubscription",
          summary: "Disable a subscription",
          description:
            "Nothing is sent until it is enabled. Queued events are held and queued tests are skipped. Raises no alert.",
        },
      },
    );
}

const operatorChanging = withStepUp(inPerson(OPERATORS.access));

/** Serves the routes with which operators disable, enable or delete a subscription of a partner (contract 10.3). */
export function operatorStateRoutes(deps: WebhookRouteDeps) {
  return readingBase(deps, OPERATORS)
    .post(
      "/disable",
      async ({ principal, requestContext, subscription, body }) => {
        const by = { disabledReason: DISABLED_BY_OPERATOR, disabledNote: body.reason } as const;
        const caller = { principal, requestContext };
        return showSubscription(await disableSubscription(deps, caller, subscription, by));
      },
      {
        access: operatorChanging,
        subscription: true,
        body: OperatorDisableBody,
        response: { 200: SubscriptionObject },
        detail: {
          operationId: "disableSubscriptionOfPartner",
          summary: "Disable a subscription of a partner",
          description:
            "The partner sees `reason` as `disabled_note` and cannot enable the subscription. Its events are held.",
        },
      },
    )
    .post(
      "/enable",
      async ({ principal, requestContext, subscription, body: { held = "deliver" } }) => {
        const caller = { principal, requestContext };
        const options = { held, test: false };
        const enabled = await enableSubscription(deps, caller, subscription, options);
        return showSubscription(enabled.subscription);
      },
      {
        access: { ...operatorChanging, mayBeEmpty: true },
        subscription: true,
        body: OperatorEnableBody,
        response: { 200: SubscriptionObject, 409: errorResponse("company_inactive") },
        detail: {
          operationId: "enableSubscriptionOfPartner",
          summary: "Enable a subscription of a partner",
          description:
            "Regardless of the reason why it was disabled. Held events are delivered in order, or skipped, as `held` says.",
        },
      },
    )
    .delete(
      "",
      async ({ principal, requestContext, subscription, query, status }) => {
        await deleteSubscription(deps, { principal, requestContext }, subscription, query.reason);
        return status(204, undefined);
      },
      {
        access: operatorChanging,
        subscription: true,
        query: OperatorDeleteQuery,
        response: { 204: Type.Void() },
        detail: {
          operationId: "deleteSubscriptionOfPartner",
          summary: "Delete a subscription of a partner",
          description: "`reason` is recorded in the audit log. Queued events are skipped.",
        },
      },
    );
}
