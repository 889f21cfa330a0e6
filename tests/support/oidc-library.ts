// Prints how `oauth4webapi` judges invalid id_tokens; docs/decisions/oidc-client.md has the table.
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import * as oauth from "oauth4webapi";

const issuer = "https://idp.example";
const server: oauth.AuthorizationServer = { issuer, jwks_uri: `${issuer}/keys` };
const [own, other] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
const keys = { keys: [{ ...(await exportJWK(own.publicKey)), kid: "own", alg: "RS256" }] };
const nowS = Math.floor(Date.now() / 1_000);
const claims = { iss: issuer, aud: "us", sub: "1", nonce: "n", iat: nowS, exp: nowS + 60 };
const signed = (changed: object, kid = "own", key = own.privateKey) =>
  new SignJWT({ ...claims, ...changed }).setProtectedHeader({ alg: "RS256", kid }).sign(key);

const tokens = {
  right: await signed({}),
  "wrong issuer": await signed({ iss: "https://other.example" }),
  "wrong audience": await signed({ aud: "them" }),
  "wrong party": await signed({ aud: ["us", "them"], azp: "them" }),
  "wrong nonce": await signed({ nonce: "m" }),
  expired: await signed({ exp: nowS - 600 }),
  "issued two hours ago": await signed({ iat: nowS - 7_200 }),
  "wrong algorithm": await new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256" })
    .sign(new Uint8Array(32)),
  "wrong signature": await signed({}, "own", other.privateKey),
  "unknown key": await signed({}, "other"),
  "empty subject": await signed({ sub: "" }),
  "no JWT": "a.b.c",
};
for (const [name, idToken] of Object.entries(tokens)) console.log(name, await verdictOn(idToken));

async function verdictOn(idToken: string): Promise<string> {
  const answer = Response.json({ access_token: "t", token_type: "bearer", id_token: idToken });
  const expected = { expectedNonce: "n", requireIdToken: true };
  try {
    await oauth.processAuthorizationCodeResponse(server, { client_id: "us" }, answer, expected);
    await oauth.validateApplicationLevelSignature(server, answer, {
      [oauth.customFetch]: async () => Response.json(keys),
    });
    return "accepted";
  } catch (error) {
    return error instanceof Error ? `${Reflect.get(error, "code")}: ${error.message}` : "";
  }
}
