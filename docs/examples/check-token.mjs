// npm install jose
import { createInterface } from "node:readline";

import { createRemoteJWKSet, jwtVerify } from "jose";

const ROOT = process.env.REVIEWRELAY; // SERVER_ROOT of ReviewRelay, such as https://reviews.example
const SCOPES = ["*", "reviews:read"]; // one of these opens your route
const keys = createRemoteJWKSet(new URL(`${ROOT}/.well-known/jwks.json`));

const opens = (scope) => scope.split(" ").some((one) => SCOPES.includes(one));

/** Answers the id of the user without asking. A revoked token passes until it expires. */
export async function checkByKeys(token) {
  const { payload } = await jwtVerify(token, keys, {
    algorithms: ["RS256"],
    typ: "at+jwt",
    issuer: ROOT,
    audience: `${ROOT}/api`,
    requiredClaims: ["exp"],
  });
  if (!opens(payload.scope)) throw new Error("The token lacks the scope.");
  return Number(payload.sub);
}

/** Asks ReviewRelay, which refuses a revoked token at once. */
export async function introspect(token) {
  const response = await fetch(`${ROOT}/api/v1/platform/introspect`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${process.env.SERVICE_TOKEN}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(5_000),
  });
  if (!response.ok) throw new Error(`The introspection was answered ${response.status}.`);
  const { active, scope, user_id } = await response.json();
  if (!active || !opens(scope)) throw new Error("The token is not valid here.");
  return user_id;
}

// node check-token.mjs < tokens, one a line
for await (const token of createInterface({ input: process.stdin })) {
  const refused = (error) => console.error(error.message) ?? "-";
  console.log(await checkByKeys(token).catch(refused), await introspect(token).catch(refused));
}
