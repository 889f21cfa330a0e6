import type { Config } from "../lib/config.ts";
import type { AssertionBody, CredentialBody } from "./factor-model.ts";

/** A passkey as it is stored. */
export interface Passkey {
  readonly credentialId: string;
  readonly publicKey: Uint8Array;
  readonly signCount: number;
  readonly transports: readonly string[];
}

type Root = Pick<Config, "serverRoot">;

/**
 * Loads the WebAuthn library, dynamically because it takes a sixth of the time in which the API loads,
 * and only routes of passkeys need it.
 */
const library = () => import("@simplewebauthn/server");

/** The relying party of WebAuthn: the host of the server root, whose origin the browser must name. */
const rpIdOf = ({ serverRoot }: Root): string => new URL(serverRoot).hostname;
const expectedOf = (root: Root, challenge: string) => ({
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

/** Makes the options with which a browser creates a passkey of a user who has these already. */
export async function creationOptions(
  root: Root,
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
  const { generateRegistrationOptions } = await library();
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

/** Makes the options with which a browser proves one of these passkeys. */
export async function requestOptions(
  root: Root,
  known: readonly Pick<Passkey, "credentialId" | "transports">[],
) {
  const { generateAuthenticationOptions } = await library();
  return generateAuthenticationOptions({
    rpID: rpIdOf(root),
    allowCredentials: known.map(descriptorOf),
    userVerification: "required",
  });
}

/** Checks a created passkey. Returns undefined if it is not one for the challenge and this origin. */
export async function verifyCreated(
  root: Root,
  challenge: string,
  { id, response }: CredentialBody,
): Promise<Passkey | undefined> {
  const { clientDataJSON, attestationObject, transports = [] } = response;
  const sent = { clientDataJSON, attestationObject };
  const { verifyRegistrationResponse } = await library();
  const { verified, registrationInfo } = await orUnverified(
    verifyRegistrationResponse({
      ...expectedOf(root, challenge),
      response: { ...rest(id), response: sent },
    }),
  );
  if (!verified || registrationInfo === undefined) return undefined;
  const { id: credentialId, publicKey, counter: signCount } = registrationInfo.credential;
  return { credentialId, publicKey, signCount, transports };
}

/** Checks a proof by a passkey. Returns its new counter; undefined if the proof is wrong, or the counter goes back. */
export async function verifyAssertion(
  root: Root,
  challenge: string,
  {
    passkey,
    proof: { id, response },
  }: { readonly passkey: Passkey; readonly proof: AssertionBody },
): Promise<number | undefined> {
  const { clientDataJSON, authenticatorData, signature } = response;
  const { verifyAuthenticationResponse } = await library();
  const { verified, authenticationInfo } = await orUnverified(
    verifyAuthenticationResponse({
      ...expectedOf(root, challenge),
      response: { ...rest(id), response: { clientDataJSON, authenticatorData, signature } },
      credential: {
        id: passkey.credentialId,
        publicKey: new Uint8Array(passkey.publicKey),
        counter: passkey.signCount,
      },
    }),
  );
  return verified ? authenticationInfo?.newCounter : undefined;
}

/** The members of a credential that follow from its id. */
const rest = (id: string) =>
  ({ id, rawId: id, type: "public-key", clientExtensionResults: {} }) as const;

/** The library throws for a response that is malformed or belongs to another challenge, origin or key. */
function orUnverified<T extends { readonly verified: boolean }>(
  verification: Promise<T>,
): Promise<T | { readonly verified: false; readonly [other: string]: undefined | false }> {
  return verification.catch(() => ({ verified: false }));
}
