import { expect, test } from "bun:test";

import { readMetadata } from "../../../src/sso/identity-providers.ts";

test.each([
  [undefined, "client_secret_basic"],
  [["client_secret_post", "client_secret_basic", "none"], "client_secret_basic"],
  [["client_secret_post", "none"], "client_secret_post"],
  // Clients of such a provider are public (contract 4.13).
  [["none"], "none"],
  [["private_key_jwt", "none"], "none"],
])("a provider that supports %j gets the client's credentials by %s", (methods, expected) => {
  expect(authenticationOf(methods)).toBe(expected as ReturnType<typeof authenticationOf>);
});

test.each([[[]], [["private_key_jwt"]], [["tls_client_auth"]]])(
  "a provider that supports only %j is rejected",
  (methods) => {
    expect(() => authenticationOf(methods)).toThrow();
  },
);

const issuer = "https://idp.example";

const policy = { allowHttp: false, allowedNetworks: [] };

test.each([
  ["another issuer", { issuer: "https://evil.example" }, "issuer"],
  ["no issuer", { issuer: undefined }, "issuer"],
  ["no token endpoint", { token_endpoint: undefined }, "token_endpoint"],
  ["a private address", { jwks_uri: "http://10.0.0.1/jwks" }, "jwks_uri"],
  ["a file", { token_endpoint: "file:///etc/passwd" }, "token_endpoint"],
  ["a script", { authorization_endpoint: "javascript:alert(1)" }, "authorization_endpoint"],
  [
    "symmetric signatures only",
    { id_token_signing_alg_values_supported: ["HS256", "none"] },
    "id_token_signing_alg_values_supported",
  ],
])("a document that names %s is rejected for its field", (_, changes, field) => {
  expect(errorOf(() => read(changes))).toMatchObject({
    reason: "bad_discovery",
    details: { field },
  });
});

const read = (changes: object) =>
  readMetadata(
    {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      ...changes,
    },
    { issuer, policy },
  );

const authenticationOf = (methods: unknown) =>
  read({ token_endpoint_auth_methods_supported: methods }).clientAuthentication;

function errorOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
