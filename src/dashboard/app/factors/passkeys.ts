/** Error of the browser's passkey dialog. Its message names the next step for the user. */
export class PasskeyError extends Error {
  override readonly name = "PasskeyError";
}

/** Returns whether this browser can use passkeys. Pages without HTTPS cannot. */
export const hasPasskeys = (): boolean => "PublicKeyCredential" in window;

/** Lets the browser create a passkey for the options of the API, and returns it as the API takes it. */
export async function createPasskey(options: object) {
  // The assertion is safe because the API answers the JSON that WebAuthn defines.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const json = options as PublicKeyCredentialCreationOptionsJSON;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(json);
  // The assertion is safe because `create` makes a registration.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (await jsonOf(navigator.credentials.create({ publicKey }))) as RegistrationResponseJSON;
}

/** Lets the browser sign the challenge in the options of the API, and returns the proof as the API takes it. */
export async function provePasskey(options: object) {
  // The assertion is safe because the API answers the JSON that WebAuthn defines.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const json = options as PublicKeyCredentialRequestOptionsJSON;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(json);
  // The assertion is safe because `get` makes an assertion.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (await jsonOf(navigator.credentials.get({ publicKey }))) as AuthenticationResponseJSON;
}

async function jsonOf(asked: Promise<Credential | null>) {
  try {
    const credential = await asked;
    if (credential instanceof PublicKeyCredential) return credential.toJSON();
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    throw new PasskeyError(ADVICE[name] ?? NOT_USED, { cause: error });
  }
  throw new PasskeyError(NOT_USED);
}

/** Browsers answer the same to a user who cancels and to a device without a matching passkey. */
const NOT_USED =
  "Your browser gave no passkey: its dialog was closed, took too long, or found none here. Try again, or choose another way.";

/** Advice by the name of the browser's error. */
const ADVICE: Readonly<Record<string, string>> = {
  InvalidStateError: "This device has a passkey for your account already.",
  SecurityError: "Passkeys work only at the address that the server is set up for, and with https.",
};
