import { jwt } from "@elysiajs/jwt";
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
} from "jose";

import type { SecretBox } from "../lib/secret-box.ts";
import type { Claims, TokenType } from "./claims.ts";
import type { NewSigningKey, SigningKeyRow } from "./queries/keys.ts";

export const ALGORITHM = "RS256";
const MODULUS_BITS = 2048;

/** The claims that are the same in every token: who issues it, and for whom. */
export interface Issuer {
  readonly iss: string;
  readonly aud: string;
}

type Signer = (claims: Claims) => Promise<string>;

/** One key of the ring, ready for use. Only `current` and `next` can sign. */
export interface SigningKey {
  readonly kid: string;
  readonly state: SigningKeyRow["state"];
  readonly publicJwk: JWK;
  readonly verifier: CryptoKey;
  readonly signers: Readonly<Record<TokenType, Signer>> | undefined;
}

export async function generateSigningKey(box: SecretBox): Promise<NewSigningKey> {
  const pair = await generateKeyPair(ALGORITHM, { modulusLength: MODULUS_BITS, extractable: true });
  const publicJwk = await exportJWK(pair.publicKey);
  const kid = await calculateJwkThumbprint(publicJwk, "sha256");
  const privateJwk = await exportJWK(pair.privateKey);
  return {
    kid,
    publicJwk: { ...publicJwk, kid, alg: ALGORITHM, use: "sig" },
    sealedPrivateKey: box.seal(JSON.stringify(privateJwk), contextOf(kid)),
  };
}

/** Throws if the row was altered, or no master key opens it. */
export async function openSigningKey(
  row: SigningKeyRow,
  box: SecretBox,
  issuer: Issuer,
): Promise<SigningKey> {
  const publicJwk: JWK = row.publicJwk;
  if ((await calculateJwkThumbprint(publicJwk, "sha256")) !== row.kid)
    throw new Error(`The public half of signing key ${row.kid} is not the one that was stored.`);
  return {
    kid: row.kid,
    state: row.state,
    publicJwk,
    verifier: await importKey(publicJwk),
    signers: row.state === "retired" ? undefined : await openSigners(row, box, issuer),
  };
}

async function openSigners(
  row: SigningKeyRow,
  box: SecretBox,
  issuer: Issuer,
): Promise<Record<TokenType, Signer>> {
  const privateKey = await importKey(openPrivateJwk(row, box));
  const signerFor = (typ: TokenType): Signer => {
    // The plugin knows one key and one type per instance; it is used for its `sign` alone.
    const plugin = jwt({ secret: privateKey, alg: ALGORITHM, kid: row.kid, typ, ...issuer })
      .decorator.jwt;
    return ({ sub, jti, client_id, scope, exp, act }) =>
      plugin.sign({
        sub,
        jti,
        client_id,
        scope,
        ...(exp !== undefined && { exp }),
        ...(act && { act: { ...act } }),
      });
  };
  return { "at+jwt": signerFor("at+jwt"), "rt+jwt": signerFor("rt+jwt") };
}

function openPrivateJwk(row: SigningKeyRow, box: SecretBox): JWK {
  try {
    return JSON.parse(box.open(row.sealedPrivateKey, contextOf(row.kid)));
  } catch (cause) {
    throw new Error(
      `Signing key ${row.kid} does not open: MASTER_KEY is not the key that sealed it (nor is MASTER_KEY_PREVIOUS).`,
      { cause },
    );
  }
}

async function importKey(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, ALGORITHM);
  if (key instanceof Uint8Array) throw new Error("A signing key must be an RSA key.");
  return key;
}

function contextOf(kid: string): string {
  return `signing-key:${kid}`;
}
