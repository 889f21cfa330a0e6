import { Answer, route } from "../../http/route.ts";
import { enableSubscription } from "../actions/enable-subscription.ts";
import { sendTest } from "../actions/queue-events.ts";
import { rotateSecret, showSecret } from "../actions/secrets.ts";
import { QueuedEventAnswer } from "../delivery-model.ts";
import {
  EnableBody,
  RotateBody,
  SecretAnswer,
  showSubscription,
  SubscriptionObject,
  SubscriptionWithSecret,
} from "../model.ts";
import { BASE, findWith, writing, type RouteDeps } from "./deps.ts";

export function operationRoutes(deps: RouteDeps) {
  return [...secretRoutes(deps), ...stateRoutes(deps)];
}

function secretRoutes(deps: RouteDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/rotate-secret`,
      summary: "Rotate the signing secret",
      description:
        "Every attempt from now on is signed with the new secret. With a grace period deliveries also carry `X-SVC-Signature-Previous`, made with the secret until now.",
      access: writing,
      body: RotateBody,
      bodyOptional: true,
      answers: { 200: SubscriptionWithSecret },
      find: findWith(deps),
      async handle({ principal, call, found, body }) {
        const hours = body.grace_period_hours ?? 0;
        const rotated = await rotateSecret(deps, { principal, call }, found, hours);
        return { ...showSubscription(rotated.subscription), secret: rotated.secret };
      },
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/secret`,
      summary: "Show the current secret",
      description: "Each look is written to the audit log.",
      access: writing,
      answers: { 200: SecretAnswer },
      find: findWith(deps),
      handle: ({ principal, call, found }) => showSecret(deps, { principal, call }, found),
    }),
  ];
}

function stateRoutes(deps: RouteDeps) {
  return [
    route({
      method: "POST",
      path: `${BASE}/:id/test`,
      summary: "Send a test event",
      description:
        "Queues a `webhook.test`, signed, retried and recorded like any event, in a lane of its own.",
      access: writing,
      answers: { 202: QueuedEventAnswer },
      problems: ["subscription_disabled"],
      find: findWith(deps),
      handle: async ({ principal, call, found }) =>
        new Answer(202, { event_id: await sendTest(deps, { principal, call }, found) }),
    }),
    route({
      method: "POST",
      path: `${BASE}/:id/enable`,
      summary: "Enable a disabled subscription",
      description:
        "Sets the counter of failures to 0. Events that were held are delivered in order, or skipped if `held` says so.",
      access: writing,
      body: EnableBody,
      bodyOptional: true,
      answers: { 200: SubscriptionObject },
      find: findWith(deps),
      handle: async ({ principal, call, found, body }) =>
        showSubscription(
          await enableSubscription(deps, { principal, call }, found, body.held ?? "deliver"),
        ),
    }),
  ];
}
