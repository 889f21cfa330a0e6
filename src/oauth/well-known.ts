import { Elysia } from "elysia";

import { type TSchema, Type } from "@sinclair/typebox";

import { PUBLISHED_MS } from "../auth/keys/rotate-keys.ts";
import type { KeyRing } from "../auth/keys/key-ring.ts";
import { etagOf, isKnown } from "../http/files.ts";
import { jsonResponse } from "../http/openapi/schemas.ts";
import { SCOPES } from "../http/principal.ts";
import { GRANT_TYPES } from "./model.ts";

/**
 * The time in seconds for which clients may cache the documents. It is half of `PUBLISHED_MS`, the time from the
 * publication of a key until it signs tokens, so that every cache contains the key before it signs.
 */
const MAX_AGE_S = PUBLISHED_MS / 2 / 1_000;

/** Returns a document that may be cached, or a 304 if the client already has it. */
function answerOf(document: object, requestHeaders: Headers): Response {
  const body = JSON.stringify(document);
  const headers = {
    "Cache-Control": `public, max-age=${MAX_AGE_S}`,
    ETag: etagOf(body),
    // The CORS header is sent only to requests with an `Origin` header (contract 2.11), so a cache must store both
    // responses.
    Vary: "Origin",
  };
  if (isKnown(headers.ETag, requestHeaders)) return new Response(null, { status: 304, headers });
  return new Response(body, { headers: { ...headers, "Content-Type": "application/json" } });
}

/**
 * Serves the public documents from which OAuth clients and resource servers configure themselves (RFC 8414, RFC
 * 7517).
 */
export function wellKnown(keys: Pick<KeyRing, "jwks">, serverRoot: string) {
  const metadata = authorizationServerMetadata(serverRoot);
  return new Elysia({ prefix: "/.well-known", tags: ["Documents"] })
    .get("/jwks.json", ({ request }) => answerOf(keys.jwks(), request.headers), {
      detail: {
        operationId: "getKeys",
        summary: "Get the keys that verify tokens",
        description: "JSON Web Key Set (RFC 7517).",
        responses: { "200": jsonResponse("The keys.", KEYS), "304": NOT_MODIFIED },
      },
    })
    .get("/oauth-authorization-server", ({ request }) => answerOf(metadata, request.headers), {
      detail: {
        operationId: "getOAuthMetadata",
        summary: "Get the metadata of the authorization server",
        description: "OAuth clients configure themselves with it (RFC 8414).",
        responses: { "200": jsonResponse("The metadata.", METADATA), "304": NOT_MODIFIED },
      },
    });
}

/**
 * Returns the metadata of `/.well-known/oauth-authorization-server` (RFC 8414). Authorization responses contain `iss`
 * as in RFC 9207.
 */
function authorizationServerMetadata(serverRoot: string): Record<string, unknown> {
  const withSecret = ["client_secret_basic", "client_secret_post"];
  return {
    issuer: serverRoot,
    authorization_endpoint: `${serverRoot}/oauth/authorize`,
    token_endpoint: `${serverRoot}/oauth/token`,
    revocation_endpoint: `${serverRoot}/oauth/revoke`,
    introspection_endpoint: `${serverRoot}/oauth/introspect`,
    jwks_uri: `${serverRoot}/.well-known/jwks.json`,
    scopes_supported: SCOPES,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: GRANT_TYPES,
    token_endpoint_auth_methods_supported: [...withSecret, "none"],
    revocation_endpoint_auth_methods_supported: [...withSecret, "none"],
    introspection_endpoint_auth_methods_supported: withSecret,
    code_challenge_methods_supported: ["S256"],
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${serverRoot}/docs`,
  };
}

const NOT_MODIFIED = { description: "Not modified: `If-None-Match` matches its `ETag`." };

const fields = Type.Record(Type.String(), Type.Unknown());
const KEYS = Type.Object(
  {
    keys: Type.Array(fields, { description: "Public keys, as RFC 7517 and RFC 7518 define them." }),
  },
  {
    title: "KeySet",
    examples: [
      {
        keys: [
          {
            kty: "RSA",
            use: "sig",
            alg: "RS256",
            kid: "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs",
            n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4…",
            e: "AQAB",
          },
        ],
      },
    ],
  },
);
const METADATA: TSchema = {
  ...fields,
  title: "OAuthMetadata",
  description: "The fields of RFC 8414, section 2.",
  examples: [authorizationServerMetadata("https://reviews.partner.example")],
};
