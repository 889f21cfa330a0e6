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

const authenticationOf = (methods: unknown) =>
  readMetadata(
    {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      token_endpoint_auth_methods_supported: methods,
    },
    { issuer, policy },
  ).clientAuthentication;
