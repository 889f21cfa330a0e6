import { readEmail, verifyIdToken, type Identity } from "./id-token.ts";
import { parseObject, type IdentityProviders } from "./identity-providers.ts";
import { SsoRefusal } from "./refusal.ts";

export interface Redemption {
  readonly issuer: string;
  readonly clientId: string;
  /** Empty for a public client. */
  readonly clientSecret: string;
  readonly redirectUri: string;
  readonly code: string;
  readonly codeVerifier: string;
  readonly nonce: string;
  readonly now: Date;
}

export interface Redeemed {
  readonly identity: Identity;
  /** Asks the provider for the email that the id_token does not name (OpenID Connect Core 1.0, 5.3). */
  readonly readUserinfo: () => Promise<Pick<Identity, "email" | "emailVerified">>;
}

/** Redeems the provider's code and answers who signed in there (OpenID Connect Core 1.0, 3.1.3). */
export async function redeemAtProvider(
  providers: IdentityProviders,
  redemption: Redemption,
): Promise<Redeemed> {
  const { issuer, clientId, nonce, now } = redemption;
  const metadata = await providers.metadata(issuer);
  const answer = await requestTokens(providers, redemption);
  const { algorithms, userinfoEndpoint } = metadata;
  const keyFor = providers.keyFor(issuer);
  const expected = { issuer, clientId, nonce, algorithms, keyFor, now };
  const identity = await verifyIdToken(answer.idToken, expected);
  return {
    identity,
    readUserinfo: async () =>
      userinfoEndpoint === undefined || answer.accessToken === undefined
        ? { email: undefined, emailVerified: false }
        : requestUserinfo(providers, {
            url: userinfoEndpoint,
            accessToken: answer.accessToken,
            subject: identity.subject,
          }),
  };
}

async function requestTokens(
  providers: IdentityProviders,
  redemption: Redemption,
): Promise<{ idToken: string; accessToken: string | undefined }> {
  const { tokenEndpoint, clientAuthentication } = await providers.metadata(redemption.issuer);
  const { clientId, clientSecret } = redemption;
  // A connection without a secret is a public client there, whatever else the provider takes.
  const method = clientSecret === "" ? "none" : clientAuthentication;
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code: redemption.code,
    redirect_uri: redemption.redirectUri,
    code_verifier: redemption.codeVerifier,
    ...(method !== "client_secret_basic" && { client_id: clientId }),
    ...(method === "client_secret_post" && { client_secret: clientSecret }),
  });
  const { status, body } = await providers.call({
    url: tokenEndpoint,
    method: "POST",
    headers: {
      Accept: "application/json",
      "Content-Type": "application/x-www-form-urlencoded",
      ...(method === "client_secret_basic" && { Authorization: basic(clientId, clientSecret) }),
    },
    body: form.toString(),
  });
  const answer = parseObject(body) ?? {};
  const { id_token: idToken, access_token: accessToken } = answer;
  if (status !== 200 || !hasText(idToken))
    throw new SsoRefusal("bad_token_answer", { status, ...errorOf(answer["error"]) });
  return { idToken, accessToken: hasText(accessToken) ? accessToken : undefined };
}

async function requestUserinfo(
  providers: IdentityProviders,
  { url, accessToken, subject }: { url: string; accessToken: string; subject: string },
): Promise<Pick<Identity, "email" | "emailVerified">> {
  const headers = { Accept: "application/json", Authorization: `Bearer ${accessToken}` };
  const { status, body } = await providers.call({ url, method: "GET", headers });
  const claims = status === 200 ? parseObject(body) : undefined;
  // OpenID Connect Core 1.0, 5.3.2: the claims of another subject say nothing about this one.
  if (claims === undefined || claims["sub"] !== subject)
    throw new SsoRefusal("bad_userinfo", { status });
  return readEmail(claims);
}

/** RFC 6749, 2.3.1: id and secret are form-encoded before they are joined by the colon. */
function basic(clientId: string, clientSecret: string): string {
  const pair = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

function formEncode(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

/** RFC 6749, 5.2: an error code is short and plain; any other text is left out of the audit log. */
export function errorOf(error: unknown): { error?: string } {
  return typeof error === "string" && /^[\w.-]{1,64}$/.test(error) ? { error } : {};
}

function hasText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
