import { join } from "../../http/join.ts";
import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";

import { BASE_PATH } from "../../http/access.ts";
import type { Checks } from "../../http/checks.ts";
import { errorResponse } from "../../http/errors.ts";
import { NO_FIELDS } from "../../http/fields.ts";
import { loads } from "../../http/request-state.ts";
import type { RuleInput } from "../../http/rules.ts";
import { isoInstant } from "../../lib/clock.ts";
import * as own from "../actions/own-factors.ts";
import { finishSignIn } from "../actions/second-step.ts";
import {
  confirmTotpBody,
  creationOptionsAnswer,
  factorsAnswer,
  freshAnswer,
  newFactorAnswer,
  newPasskeyBody,
  newTotpAnswer,
  proofBody,
  recoveryCodesAnswer,
  requestOptionsAnswer,
} from "../factor-model.ts";
import { factorHolder, ownSignIn, waitingSignIn } from "../guard.ts";
import { rememberBrowser } from "../known-browser.ts";
import { loginAnswer } from "../model.ts";

export interface SecondFactorRouteDeps extends own.OwnFactorDeps {
  readonly checks: Checks;
}

/** Defines the routes of second factors (contract 4.27). */
export function secondFactorRoutes(deps: SecondFactorRouteDeps) {
  return join(signInRoute(deps), newFactorRoutes(deps), ownFactorRoutes(deps));
}

const PREFIX = `${BASE_PATH}/account/second-factors`;
const locked = errorResponse("account_locked");
const stale = errorResponse("step_up_required");
const full = errorResponse("limit_reached");

/** A proof is one of the three fields. */
const oneProof = ({ body }: RuleInput<typeof proofBody>) => ({
  code:
    Object.keys(body).length === 1
      ? undefined
      : "send exactly one of code, recovery_code and passkey",
});

function signInRoute(deps: SecondFactorRouteDeps) {
  return new Elysia({ prefix: BASE_PATH, tags: ["Sign-in"] }).use(deps.checks).post(
    "/login/second-factor",
    async ({ principal, requestContext, body, set }) => {
      const answer = await finishSignIn(deps, { principal, requestContext }, body);
      const cookie = rememberBrowser(deps, requestContext.headers, answer.user.email);
      if (cookie !== undefined) set.headers["set-cookie"] = cookie;
      return answer;
    },
    {
      access: waitingSignIn(),
      body: proofBody,
      rules: oneProof,
      response: { 200: loginAnswer, 429: locked },
      detail: {
        operationId: "proveSecondFactor",
        summary: "Finish a sign-in by a second factor",
        description:
          "Takes the challenge token of a 401 `second_factor_required`, which ends after five wrong answers.",
      },
    },
  );
}

function newFactorRoutes(deps: SecondFactorRouteDeps) {
  return new Elysia({ prefix: PREFIX, tags: ["Self-service"] })
    .use(deps.checks)
    .get("", ({ principal }) => own.listFactors(deps, principal), {
      access: factorHolder(),
      response: { 200: factorsAnswer },
      detail: {
        operationId: "listSecondFactors",
        summary: "List the second factors of the user",
        description: "The oldest first, with the number of unused recovery codes.",
      },
    })
    .post(
      "/totp",
      ({ principal, requestContext }) => own.beginTotp(deps, { principal, requestContext }),
      {
        access: factorHolder(),
        body: NO_FIELDS,
        response: { 200: newTotpAnswer, 403: stale, 409: full },
        detail: {
          operationId: "beginAuthenticatorApp",
          summary: "Make the secret of a new authenticator app",
          description: "The app is added once it has shown a code.",
        },
      },
    )
    .post(
      "/totp/confirm",
      ({ principal, requestContext, body }) =>
        own.confirmTotp(deps, { principal, requestContext }, body),
      {
        access: factorHolder(),
        body: confirmTotpBody,
        response: { 200: newFactorAnswer, 403: stale, 409: full },
        detail: {
          operationId: "addAuthenticatorApp",
          summary: "Add the authenticator app that shows this code",
          description:
            "The first factor comes with recovery codes, and finishes a sign-in that waits.",
        },
      },
    )
    .post(
      "/passkeys/creation-options",
      ({ principal, requestContext }) => own.beginPasskey(deps, { principal, requestContext }),
      {
        access: factorHolder(),
        body: NO_FIELDS,
        response: { 200: creationOptionsAnswer, 403: stale, 409: full },
        detail: {
          operationId: "beginPasskey",
          summary: "Get the options with which a browser creates a passkey",
          description: "They work for five minutes, with this token.",
        },
      },
    )
    .post(
      "/passkeys",
      ({ principal, requestContext, body }) =>
        own.addPasskey(deps, { principal, requestContext }, body),
      {
        access: factorHolder(),
        body: newPasskeyBody,
        response: { 200: newFactorAnswer, 403: stale, 409: full },
        detail: {
          operationId: "addPasskey",
          summary: "Add a passkey that the browser created",
          description:
            "The first factor comes with recovery codes, and finishes a sign-in that waits.",
        },
      },
    )
    .post(
      "/passkeys/request-options",
      ({ principal, requestContext }) => own.passkeyRequest(deps, { principal, requestContext }),
      {
        access: factorHolder(),
        body: NO_FIELDS,
        response: { 200: requestOptionsAnswer, 404: errorResponse("not_found") },
        detail: {
          operationId: "requestPasskey",
          summary: "Get the options with which a browser proves a passkey",
          description: "They work once, for five minutes, with this token.",
        },
      },
    );
}

function ownFactorRoutes(deps: SecondFactorRouteDeps) {
  const access = ownSignIn("*");
  const none = errorResponse("no_second_factor");
  return new Elysia({ prefix: PREFIX, tags: ["Self-service"] })
    .use(deps.checks)
    .macro(
      loads("factor", ({ principal, requestContext, params }) =>
        own.findOwnFactor(deps, { principal, requestContext }, params["id"] ?? ""),
      ),
    )
    .delete(
      "/:id",
      async ({ principal, requestContext, factor, status }) => {
        await own.removeFactor(deps, { principal, requestContext }, factor);
        return status(204, undefined);
      },
      {
        access,
        factor: true,
        response: { 204: Type.Void(), 403: stale, 409: errorResponse("last_factor") },
        detail: {
          operationId: "deleteSecondFactor",
          summary: "Delete a second factor",
          description: "The recovery codes go with the last one.",
        },
      },
    )
    .post(
      "/recovery-codes",
      async ({ principal, requestContext }) => ({
        recovery_codes: [...(await own.renewRecoveryCodes(deps, { principal, requestContext }))],
      }),
      {
        access,
        body: NO_FIELDS,
        response: { 200: recoveryCodesAnswer, 403: stale, 409: none },
        detail: {
          operationId: "renewRecoveryCodes",
          summary: "Make new recovery codes",
          description: "Ten codes, shown once; the earlier ones are void.",
        },
      },
    )
    .post(
      "/step-up",
      async ({ principal, requestContext, body }) => ({
        fresh_until: isoInstant(await own.stepUp(deps, { principal, requestContext }, body)),
      }),
      {
        access,
        body: proofBody,
        rules: oneProof,
        response: { 200: freshAnswer, 409: none, 429: locked },
        detail: {
          operationId: "stepUp",
          summary: "Prove a second factor in a session",
          description: "The session is fresh for ten minutes.",
        },
      },
    );
}
