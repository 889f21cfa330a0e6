import type { Config } from "../../lib/config.ts";
import type { AssertionBody, CredentialBody } from "./model.ts";

/** A passkey as the database stores it. */
export interface Passkey {
  readonly credentialId: string;
  readonly publicKey: Uint8Array;
  readonly signCount: number;
  readonly transports: readonly string[];
}

type ServerRoot = Pick<Config, "serverRoot">;

/**
 * Loads the WebAuthn library when it is first needed. Only the routes of passkeys use it, and a static import would
 * take a sixth of the API's loading time.
 */
const webAuthnLibrary = () => import("@simplewebauthn/server");

/** Returns the id of the relying party (WebAuthn): the host name of the server root. */
const rpIdOf = ({ serverRoot }: ServerRoot): string => new URL(serverRoot).hostname;
const expectedOf = (root: ServerRoot, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: new URL(root.serverRoot).origin,
  expectedRPID: rpIdOf(root),
  requireUserVerification: true,
});

const descriptorOf = ({
  credentialId: id,
  transports,
}: Pick<Passkey, "credentialId" | "transports">) => ({
  id,
  transports: [...transports],
});

/**
 * Creates the options for `navigator.credentials.create`. They exclude authenticators that already hold a passkey of
 * the user.
 */
export async function creationOptions(
  root: ServerRoot,
  {
    user,
    rpName,
    known,
  }: {
    readonly user: { readonly id: number; readonly email: string; readonly name: string };
    readonly rpName: string;
    readonly known: readonly Pick<Passkey, "credentialId" | "transports">[];
  },
) {
  const { generateRegistrationOptions } = await webAuthnLibrary();
  return generateRegistrationOptions({
    rpName,
    rpID: rpIdOf(root),
    userID: new Uint8Array(Buffer.from(`user:${user.id}`)),
    userName: user.email,
    userDisplayName: user.name,
    attestationType: "none",
    excludeCredentials: known.map(descriptorOf),
    authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
  });
}

/** Creates the options for `navigator.credentials.get`, with which a browser proves one of the `known` passkeys. */
export async function requestOptions(
  root: ServerRoot,
  known: readonly Pick<Passkey, "credentialId" | "transports">[],
) {
  const { generateAuthenticationOptions } = await webAuthnLibrary();
  return generateAuthenticationOptions({
    rpID: rpIdOf(root),
    allowCredentials: known.map(descriptorOf),
    userVerification: "required",
  });
}

/**
 * Verifies a newly created passkey. Returns undefined if it does not match the challenge and the origin of the server
 * root.
 */
export async function verifyCreated(
  root: ServerRoot,
  challenge: string,
  { id, response }: CredentialBody,
): Promise<Passkey | undefined> {
  const { clientDataJSON, attestationObject, transports = [] } = response;
  const sent = { clientDataJSON, attestationObject };
  const { verifyRegistrationResponse } = await webAuthnLibrary();
  const { verified, registrationInfo } = await orUnverified(
    verifyRegistrationResponse({
      ...expectedOf(root, challenge),
      response: { ...membersOfId(id), response: sent },
    }),
  );
  if (!verified || registrationInfo === undefined) return undefined;
  const { id: credentialId, publicKey, counter: signCount } = registrationInfo.credential;
  return { credentialId, publicKey, signCount, transports };
}

/**
 * Verifies a proof by a passkey. Returns the new signature counter. Returns undefined if the proof is wrong or its
 * counter is too low.
 */
export async function verifyAssertion(
  root: ServerRoot,
  challenge: string,
  {
    passkey,
    proof: { id, response },
  }: { readonly passkey: Passkey; readonly proof: AssertionBody },
): Promise<number | undefined> {
  const { clientDataJSON, authenticatorData, signature } = response;
  const { verifyAuthenticationResponse } = await webAuthnLibrary();
  const { verified, authenticationInfo } = await orUnverified(
    verifyAuthenticationResponse({
      ...expectedOf(root, challenge),
      response: { ...membersOfId(id), response: { clientDataJSON, authenticatorData, signature } },
      credential: {
        id: passkey.credentialId,
        publicKey: new Uint8Array(passkey.publicKey),
        counter: passkey.signCount,
      },
    }),
  );
  return verified ? authenticationInfo?.newCounter : undefined;
}

/** Returns the members of a credential that its id determines or that never differ. */
const membersOfId = (id: string) =>
  ({ id, rawId: id, type: "public-key", clientExtensionResults: {} }) as const;

/**
 * Converts an exception of the WebAuthn library into a failed verification. The WebAuthn library throws if a response
 * is malformed or belongs to another challenge, origin or key.
 */
function orUnverified<T extends { readonly verified: boolean }>(
  verification: Promise<T>,
): Promise<T | { readonly verified: false; readonly [other: string]: undefined | false }> {
  return verification.catch(() => ({ verified: false }));
}
