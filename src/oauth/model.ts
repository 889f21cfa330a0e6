import { Type, type Static } from "@sinclair/typebox";

import type { authorizationCodes, oauthClients } from "../../db/schema/tokens.ts";
import { literals, scopeList } from "../http/principal.ts";
import { instantAnswer, orNull, receiving, secretText, shortName } from "../http/text.ts";

export const GRANT_TYPES = ["password", "refresh_token", "authorization_code"] as const;

/** Grant types of a new OAuth client whose request names no grant type. */
export const DEFAULT_GRANTS: readonly (typeof GRANT_TYPES)[number][] = [
  "authorization_code",
  "refresh_token",
];

/** An OAuth client. Its `secretHash` is null if and only if the client is public. */
export type OAuthClient = typeof oauthClients.$inferSelect;

/** A row of the table `authorization_codes`. The comment of the table in db/schema/tokens.ts explains its states. */
export type AuthorizationCode = Omit<typeof authorizationCodes.$inferSelect, "redeemedAt">;

/** The success response of the token endpoint (RFC 6749, 5.1). */
export interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: "Bearer";
  readonly expires_in: number;
  readonly refresh_token?: string;
  readonly scope: string;
}

/**
 * The pattern of a client id. New clients get UUIDs. An imported client keeps its id, which must consist of characters
 * that a URL does not encode.
 */
export const CLIENT_ID_PATTERN = "^[A-Za-z0-9._~-]{1,100}$";

const closed = { additionalProperties: false } as const;
const URI_LENGTH = 2_048;
const MAX_REDIRECT_URIS = 20;

const fields = {
  name: shortName,
  redirect_uris: receiving(
    Type.Array(Type.String({ minLength: 1, maxLength: URI_LENGTH }), {
      maxItems: MAX_REDIRECT_URIS,
      uniqueItems: true,
      title: "RedirectUris",
      examples: [["https://partner.example/callback"]],
      description: "Allowed redirect URIs.",
    }),
  ),
  scopes: scopeList,
  grant_types: Type.Array(literals(GRANT_TYPES), {
    minItems: 1,
    uniqueItems: true,
    title: "GrantTypes",
    examples: [["authorization_code", "refresh_token"]],
    description: "Grant types that the client may use.",
  }),
  first_party: Type.Boolean(),
  require_pkce: Type.Boolean(),
};

export const newClientBody = Type.Object(
  {
    name: fields.name,
    redirect_uris: Type.Optional(fields.redirect_uris),
    confidential: Type.Optional(Type.Boolean()),
    scopes: Type.Optional(fields.scopes),
    grant_types: Type.Optional(fields.grant_types),
    first_party: Type.Optional(fields.first_party),
    require_pkce: Type.Optional(fields.require_pkce),
  },
  {
    ...closed,
    title: "OAuthClientInput",
    examples: [
      {
        name: "CRM",
        redirect_uris: ["https://partner.example/callback"],
        scopes: ["webhooks:read"],
      },
    ],
  },
);
export type NewClientBody = Static<typeof newClientBody>;

export const clientChanges = Type.Partial(Type.Object(fields), {
  ...closed,
  title: "OAuthClientUpdate",
  examples: [{ name: "CRM", scopes: ["webhooks:read"] }],
});
export type ClientChanges = Static<typeof clientChanges>;

const clientFields = {
  client_id: Type.String({ pattern: CLIENT_ID_PATTERN }),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  confidential: Type.Boolean(),
  scopes: Type.Array(Type.String()),
  grant_types: Type.Array(Type.String()),
  first_party: Type.Boolean(),
  require_pkce: Type.Boolean(),
  company_id: orNull(Type.Integer()),
  created_at: instantAnswer(),
  updated_at: instantAnswer(),
};
export const clientObject = Type.Object(clientFields, {
  title: "OAuthClient",
  examples: [
    { name: "CRM", grant_types: ["authorization_code", "refresh_token"], first_party: false },
  ],
});

/** The only response that contains the client secret (contract 5.6). The secret is null for a public client. */
export const newClientObject = Type.Object(
  {
    ...clientFields,
    client_secret: orNull(secretText()),
  },
  { title: "OAuthClientWithSecret", extends: clientObject },
);
