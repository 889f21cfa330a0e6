// npm install openid-client
import { createInterface } from "node:readline/promises";

import * as client from "openid-client";

const ROOT = "{{root}}";
const config = await client.discovery(
  new URL(ROOT),
  process.env.CLIENT_ID,
  undefined,
  client.ClientSecretBasic(process.env.CLIENT_SECRET),
  // `allowInsecureRequests` is only for a server on your own machine; omit `execute` in production.
  { algorithm: "oauth2", execute: ROOT.startsWith("http:") ? [client.allowInsecureRequests] : [] },
);

// Send the browser to this URL, and store the verifier and the state in the user's session.
const pkceCodeVerifier = client.randomPKCECodeVerifier();
const expectedState = client.randomState();
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: "https://app.example/callback",
  scope: "reviews:read",
  state: expectedState,
  code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
  code_challenge_method: "S256",
});
console.log(url.href);

// Read the URL to which the browser was redirected. The library checks state and iss.
const lines = createInterface({ input: process.stdin });
const answer = await lines.question("");
lines.close();
const checks = { pkceCodeVerifier, expectedState };
const first = await client.authorizationCodeGrant(config, new URL(answer), checks);

const tokens = await client.refreshTokenGrant(config, first.refresh_token);
const headers = { Authorization: `Bearer ${tokens.access_token}` };
const me = await fetch(`${ROOT}/api/v1/verify-token`, { headers });
console.log((await me.json()).user.email);
await client.tokenRevocation(config, tokens.refresh_token);
console.log((await fetch(`${ROOT}/api/v1/verify-token`, { headers })).status);
