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
import * as own from "./own-factors.ts";
import { finishSignIn } from "./second-step.ts";
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
} from "./model.ts";
import { factorHolder, ownSignIn, waitingSignIn } from "../access/guard.ts";
import { rememberBrowser } from "../sign-in/log-in.ts";
import { loginAnswer } from "../model.ts";

export interface SecondFactorRouteDeps extends own.OwnFactorDeps {
  readonly checks: Checks;
}

/** Defines the routes of second factors (contract 4.27). */
export function secondFactorRoutes(deps: SecondFactorRouteDeps) {
  return join(signInRoute(deps), newFactorRoutes(deps), ownFactorRoutes(deps));
}

const FACTORS_PATH = `${BASE_PATH}/account/second-factors`;
const lockedResponse = errorResponse("account_locked");
const staleResponse = errorResponse("step_up_required");
const fullResponse = errorResponse("limit_reached");

/** Returns the validation error of a proof that does not contain exactly one of its three fields. */
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
      response: { 200: loginAnswer, 429: lockedResponse },
      detail: {
        operationId: "proveSecondFactor",
        summary: "Complete a sign-in with a second factor",
        description:
          "Requires the challenge token of a 401 `second_factor_required`. The token is revoked after five wrong attempts.",
      },
    },
  );
}

function newFactorRoutes(deps: SecondFactorRouteDeps) {
  return new Elysia({ prefix: FACTORS_PATH, tags: ["Self-service"] })
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
        response: { 200: newTotpAnswer, 403: staleResponse, 409: fullResponse },
        detail: {
          operationId: "beginAuthenticatorApp",
          summary: "Create the secret of a new authenticator app",
          description: "The app is added after you send a code that it shows.",
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
        response: { 200: newFactorAnswer, 403: staleResponse, 409: fullResponse },
        detail: {
          operationId: "addAuthenticatorApp",
          summary: "Add the authenticator app that shows this code",
          description: "The first factor returns recovery codes and completes a pending sign-in.",
        },
      },
    )
    .post(
      "/passkeys/creation-options",
      ({ principal, requestContext }) => own.beginPasskey(deps, { principal, requestContext }),
      {
        access: factorHolder(),
        body: NO_FIELDS,
        response: { 200: creationOptionsAnswer, 403: staleResponse, 409: fullResponse },
        detail: {
          operationId: "beginPasskey",
          summary: "Get the options for creating a passkey in a browser",
          description: "The options are valid for five minutes, with this token only.",
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
        response: { 200: newFactorAnswer, 403: staleResponse, 409: fullResponse },
        detail: {
          operationId: "addPasskey",
          summary: "Add a passkey that the browser created",
          description: "The first factor returns recovery codes and completes a pending sign-in.",
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
          summary: "Get the options for proving a passkey in a browser",
          description: "The options are valid once, for five minutes, with this token only.",
        },
      },
    );
}

function ownFactorRoutes(deps: SecondFactorRouteDeps) {
  const access = ownSignIn("*");
  const none = errorResponse("no_second_factor");
  return new Elysia({ prefix: FACTORS_PATH, tags: ["Self-service"] })
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
        response: { 204: Type.Void(), 403: staleResponse, 409: errorResponse("last_factor") },
        detail: {
          operationId: "deleteSecondFactor",
          summary: "Delete a second factor",
          description: "Deleting the last factor also deletes the recovery codes.",
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
        response: { 200: recoveryCodesAnswer, 403: staleResponse, 409: none },
        detail: {
          operationId: "renewRecoveryCodes",
          summary: "Create new recovery codes",
          description: "Returns ten codes, which are shown once. Earlier codes stop working.",
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
        response: { 200: freshAnswer, 409: none, 429: lockedResponse },
        detail: {
          operationId: "stepUp",
          summary: "Prove a second factor in a session",
          description: "The session is then fresh for ten minutes.",
        },
      },
    );
}
