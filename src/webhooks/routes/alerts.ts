import { Elysia } from "elysia";

import type { Static } from "@sinclair/typebox";

import { partnerAdmin, withStepUp, withStepUpOfReceivers } from "../../auth/guard.ts";
import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { join } from "../../http/join.ts";
import { errorResponse } from "../../http/errors.ts";
import type { RuleInput } from "../../http/rules.ts";
import { SecretAnswer } from "../model.ts";
import {
  findSettings,
  rotateSecret,
  settingsErrors,
  showSecret,
  updateSettings,
  type AlertDeps,
} from "../actions/alerts.ts";
import { confirmRecipient } from "../actions/alert-recipients.ts";
import {
  AlertSettingsObject,
  AlertSettingsUpdate,
  AlertSettingsWithSecret,
  ConfirmedRecipient,
  RecipientCode,
  showSettings,
} from "../alert-model.ts";

const reading = partnerAdmin("webhooks:read");
const writing = partnerAdmin("webhooks:write");

type AlertRouteDeps = AlertDeps & { readonly checks: Checks };

/** Serves the alert settings of a partner, the secret of alert POSTs (contract 7.17), and the recipients' confirmation. */
export function alertRoutes(deps: AlertRouteDeps) {
  return join(settingsRoutes(deps), confirmationRoutes(deps));
}

/** Serves the confirmation to anybody, outside of `/partner`, where every route needs a token (contract 3.3). */
function confirmationRoutes(deps: AlertRouteDeps) {
  const confirm = ({ body }: { readonly body: Static<typeof RecipientCode> }) =>
    confirmRecipient(deps, body.code);
  const hooks = {
    public: true,
    body: RecipientCode,
    response: { 200: ConfirmedRecipient, 400: errorResponse("invalid_code") },
  } as const;
  return new Elysia({ prefix: BASE_PATH, tags: ["Webhooks"] })
    .use(deps.checks)
    .post("/alert-recipients/confirm", confirm, {
      ...hooks,
      detail: {
        operationId: "confirmAlertRecipient",
        summary: "Confirm a recipient of alerts",
        description: "Takes the code of the mailed link, for seven days.",
      },
    })
    .post("/partner/alerts/confirm", confirm, {
      ...hooks,
      detail: {
        operationId: "confirmAlertRecipientOfPartner",
        summary: "Confirm a recipient of alerts at the former path",
        description: "The same as `POST /alert-recipients/confirm`.",
        deprecated: true,
      },
    });
}

function settingsRoutes(deps: AlertRouteDeps) {
  return new Elysia({ prefix: `${BASE_PATH}/partner/alerts`, tags: ["Webhooks"] })
    .use(deps.checks)
    .get("", async ({ principal }) => showSettings(await findSettings(deps, principal)), {
      access: reading,
      response: { 200: AlertSettingsObject },
      detail: {
        operationId: "getAlerts",
        summary: "Show the alert settings",
        description: "Returns the defaults until they are changed.",
      },
    })
    .patch(
      "",
      async ({ principal, requestContext, body }) => {
        const { secret, ...settings } = await updateSettings(
          deps,
          { principal, requestContext },
          body,
        );
        return { ...showSettings(settings), secret };
      },
      {
        access: withStepUpOfReceivers(writing),
        body: AlertSettingsUpdate,
        rules: ({ principal, body }: RuleInput<typeof AlertSettingsUpdate>) =>
          settingsErrors(deps, principal, body),
        response: { 200: AlertSettingsWithSecret },
        detail: {
          operationId: "updateAlerts",
          summary: "Change the alert settings",
          description:
            "Send only the fields to change. The first `webhook_url` makes a secret. Another `webhook_url` or other `recipients` ask for a fresh session.",
        },
      },
    )
    .post(
      "/rotate-secret",
      async ({ principal, requestContext }) => {
        const { secret, ...settings } = await rotateSecret(deps, { principal, requestContext });
        return { ...showSettings(settings), secret };
      },
      {
        access: withStepUp(writing),
        body: NO_FIELDS,
        response: { 200: AlertSettingsWithSecret, 404: errorResponse("not_found") },
        detail: {
          operationId: "rotateAlertSecret",
          summary: "Rotate the secret of alerts",
          description: "Takes effect at once, without a grace period.",
        },
      },
    )
    .post(
      "/secret",
      ({ principal, requestContext }) => showSecret(deps, { principal, requestContext }),
      {
        access: withStepUp(writing),
        body: NO_FIELDS,
        response: { 200: SecretAnswer, 404: errorResponse("not_found") },
        detail: {
          operationId: "showAlertSecret",
          summary: "Show the secret of alerts",
          description: "Each request is audited.",
        },
      },
    );
}
