import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, type DataOf } from "../api/client.ts";

/**
 * Reads the second factors of the user whose token the client sends. It is the token of a session, or of a sign-in
 * that waits for a second factor.
 */
export const factorsOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["second-factors"],
    queryFn: () => answerOf(api.account["second-factors"].get()),
  });

/**
 * Creates the secret of an authenticator app. Prevents a refetch, which would create another secret; the server would
 * reject codes of the secret that is shown.
 */
export const newAppOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["new-authenticator-app"],
    queryFn: () => answerOf(api.account["second-factors"].totp.post()),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  });

export type Factor = DataOf<typeof factorsOptions>["factors"][number];

/** Way in which a user can prove a second factor. */
export type FactorMethod = "totp" | "passkey" | "recovery_code";

/** Returns the ways in which the user of a session can prove a second factor. */
export function methodsOf({
  factors,
  recovery_codes_left: codes,
}: DataOf<typeof factorsOptions>): FactorMethod[] {
  const kinds = new Set<FactorMethod>(factors.map(({ kind }) => kind));
  return [...kinds, ...(codes > 0 ? (["recovery_code"] as const) : [])];
}

/** Proof of a second factor, in the form in which the API accepts it. */
export type Proof = NonNullable<Parameters<ApiClient["login"]["second-factor"]["post"]>[0]>;

/** Requests that add and prove second factors. */
export function factorRequests(api: ApiClient) {
  const own = api.account["second-factors"];
  return {
    /** Adds the authenticator app with the secret of `newAppOptions` when the user has entered a code from it. */
    addApp: (draft: { readonly code: string; readonly name: string }) =>
      answerOf(own.totp.confirm.post({ code: draft.code, ...nameField(draft) })),
    /** Lets the browser create a passkey, and stores it under a name. */
    addPasskey: async (draft: { readonly name: string }) => {
      const options = await answerOf(own.passkeys["creation-options"].post());
      const credential = await createPasskey(options);
      return answerOf(own.passkeys.post({ credential, ...nameField(draft) }));
    },
    /** Lets the browser sign a challenge of the API with one of the user's passkeys. */
    proofByPasskey: async (): Promise<Proof> => {
      const options = await answerOf(own.passkeys["request-options"].post());
      return { passkey: await provePasskey(options) };
    },
    finishSignIn: (proof: Proof) => answerOf(api.login["second-factor"].post(proof)),
    stepUp: (proof: Proof) => answerOf(own["step-up"].post(proof)),
    remove: (id: string) => answerOf(own({ id }).delete()),
    renewRecoveryCodes: async () => (await answerOf(own["recovery-codes"].post())).recovery_codes,
  };
}

/** Response of the API to a request that adds a second factor. */
export type NewFactor = Awaited<ReturnType<ReturnType<typeof factorRequests>["addApp"]>>;

/** Returns the `name` field of a request that adds a factor. Omits an empty name, because the API then chooses one. */
function nameField({ name }: { readonly name: string }) {
  return name.trim() === "" ? {} : { name: name.trim() };
}

/** Error of the browser's passkey dialog. Its message names the next step for the user. */
export class PasskeyError extends Error {
  override readonly name = "PasskeyError";
}

/** Returns whether this page can use passkeys. Browsers offer passkeys only to pages that are served over HTTPS. */
export const hasPasskeys = (): boolean =>
  "PublicKeyCredential" in window && !IP_ADDRESS.test(location.hostname);

/** Matches the host of an address without a name. No browser creates a passkey for one. */
const IP_ADDRESS = /^(?:[\d.]+|\[.*\])$/;

/**
 * Reads the host that the server binds passkeys to. A page at another host, such as that of a white label, cannot use
 * them.
 */
export const passkeyHostOptions = queryOptions({
  queryKey: ["passkey-host"],
  queryFn: async () => {
    const answer = await fetch("/.well-known/oauth-authorization-server");
    const { issuer }: { readonly issuer: string } = await answer.json();
    return new URL(issuer).hostname;
  },
  staleTime: Number.POSITIVE_INFINITY,
});

/**
 * Lets the browser create a passkey with the options from the API. Returns the passkey in the form that the API
 * accepts.
 */
async function createPasskey(options: object): Promise<RegistrationResponseJSON> {
  // The type assertion is safe because the API returns the JSON that WebAuthn defines.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const json = options as PublicKeyCredentialCreationOptionsJSON;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
  return jsonOf(navigator.credentials.create({ publicKey }));
}

/**
 * Lets the browser sign the challenge in the options from the API. Returns the proof in the form that the API
 * accepts.
 */
async function provePasskey(
  options: PublicKeyCredentialRequestOptionsJSON,
): Promise<AuthenticationResponseJSON> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  return jsonOf(navigator.credentials.get({ publicKey }));
}

async function jsonOf(asked: Promise<Credential | null>) {
  try {
    const credential = await asked;
    if (credential instanceof PublicKeyCredential)
      // The type assertion is safe because each caller reads only what it asked the browser for: `create` returns the
      // registration of a new passkey, and `get` the signature of an existing one.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return credential.toJSON() as RegistrationResponseJSON & AuthenticationResponseJSON;
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    throw new PasskeyError(ADVICE_BY_ERROR[name] ?? NO_PASSKEY_ADVICE, { cause: error });
  }
  throw new PasskeyError(NO_PASSKEY_ADVICE);
}

/**
 * Message for a passkey dialog without a result. It names several causes, because browsers report the same error if
 * the user cancels and if the device has no matching passkey.
 */
const NO_PASSKEY_ADVICE =
  "Your browser returned no passkey: its dialog was closed or timed out, or this device has none. Try again, or use another method.";

/** Maps the name of an error of the browser's passkey dialog to advice for the user. */
const ADVICE_BY_ERROR: Readonly<Record<string, string>> = {
  InvalidStateError: "This device already has a passkey for your account.",
  SecurityError:
    "Passkeys work only over https and at the address that is configured on the server.",
};
