import { Type, type Static } from "@sinclair/typebox";

import type { ssoConnections, ssoIdentities } from "../../db/schema/sign-in.ts";
import { pageQuery } from "../http/list.ts";
import { isRowId, isUlid } from "../http/ids.ts";
import { literals } from "../http/principal.ts";
import { type RowOf, shown } from "../http/shown.ts";
import { instantAnswer, orNull, receiving, rowId, storableText } from "../http/text.ts";
import { storeIdList } from "../tenants/model.ts";

/** The reason why a sign-in through an identity provider failed. Only the audit log shows the reason. */
export type SsoErrorReason =
  // Reason at the first step, the redirect to the identity provider.
  | "unknown_connection"
  // Reasons if the identity provider does not respond, or sends an invalid response.
  | "provider_unreachable"
  | "bad_discovery"
  | "bad_keys"
  | "bad_token_answer"
  | "bad_userinfo"
  // Reasons in the parameters of the callback.
  | "unknown_state"
  | "foreign_browser"
  | "replayed_state"
  | "expired_state"
  | "mixed_up_provider"
  | "wrong_response_issuer"
  | "provider_error"
  | "no_code"
  // Reasons in the identity provider's id_token.
  | "malformed_id_token"
  | "wrong_algorithm"
  | "unknown_key"
  | "wrong_signature"
  | "wrong_issuer"
  | "wrong_audience"
  | "wrong_authorized_party"
  | "wrong_nonce"
  | "expired_id_token"
  | "wrong_issue_time"
  // Reasons that concern the user whom the id_token names.
  | "no_email"
  | "unverified_email"
  | "foreign_domain"
  | "unknown_user"
  | "unproved_domain"
  | "no_store"
  | "bad_email"
  | "bad_name"
  | "ambiguous_email"
  | "foreign_user"
  | "super_admin"
  | "other_subject"
  | "unlinked"
  | "inactive_user"
  // Reasons at the last step, the exchange of the one-time code.
  | "unknown_code"
  | "replayed_code"
  | "expired_code"
  | "wrong_verifier";

/** Patterns of a PKCE verifier and of an S256 challenge, which always has 43 characters (RFC 7636, 4.1 and 4.2). */
const VERIFIER_PATTERN = "^[A-Za-z0-9._~-]{43,128}$";
const CHALLENGE_PATTERN = "^[A-Za-z0-9_-]{43}$";

export const redirectQuery = Type.Object({
  email: Type.Optional(Type.String({ maxLength: 254 })),
  connection: Type.Optional(Type.String({ maxLength: 64 })),
  return_to: Type.Optional(Type.String({ maxLength: 2048 })),
  code_challenge: Type.Optional(
    Type.String({
      pattern: CHALLENGE_PATTERN,
      explain: "must be the S256 challenge of a verifier, 43 characters in base64url",
    }),
  ),
  code_challenge_method: Type.Optional(Type.Literal("S256", { explain: "must be S256" })),
});
export type RedirectQuery = Static<typeof redirectQuery>;

/** The identity provider's authorization response in the query of the callback (RFC 6749, 4.1.2; RFC 9207, 2). */
export const callbackQuery = Type.Object({
  state: Type.Optional(Type.String()),
  code: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  iss: Type.Optional(Type.String()),
});
export type CallbackQuery = Static<typeof callbackQuery>;

// Query parameters of the exchange of a one-time code. The schema accepts any value: a rejection by the schema would be
// a 422, but every failure must be the same 400 (contract 4.13).
export const exchangeQuery = Type.Object({
  code: Type.Optional(Type.String({ repeatable: true })),
  code_verifier: Type.Optional(Type.String({ repeatable: true })),
});
export type ExchangeQuery = Static<typeof exchangeQuery>;

const verifier = new RegExp(VERIFIER_PATTERN);
export const isVerifier = (text: string): boolean => verifier.test(text);

const closed = { additionalProperties: false } as const;
const URL_CHARS = 2048;
const DOMAIN_CHARS = 253;
const MAX_DOMAINS = 100;

const settings = {
  issuer: receiving(
    Type.String({
      minLength: 1,
      maxLength: URL_CHARS,
      explain: "must be the provider's issuer, an https URL without query or fragment",
    }),
  ),
  client_id: storableText([1, 255]),
  client_secret: {
    ...storableText([1, 512]),
    description: "Absent for a public client.",
  },
  domains: Type.Array(Type.String({ minLength: 1, maxLength: DOMAIN_CHARS }), {
    minItems: 1,
    maxItems: MAX_DOMAINS,
    explain: `must be a list of 1 to ${MAX_DOMAINS} domains`,
    title: "EmailDomains",
    examples: [["partner.example"]],
    description: "Email domains that sign in with this connection.",
  }),
};

const trustEmail = Type.Boolean({
  description:
    "Trusts addresses in proved domains that the provider does not report as unverified.",
});

const newUsers = Type.Object(
  {
    role: literals([
      "partner_owner",
      "partner_admin",
      "account_owner",
      "account_user",
      "location_user",
    ]),
    store_ids: Type.Optional(storeIdList),
  },
  {
    ...closed,
    title: "SsoUserDefaults",
    examples: [{ role: "partner_admin" }],
    description: "Role and stores of users that a sign-in creates.",
  },
);
const newUsersOrNull = orNull(newUsers, {
  description: "Creates users at their first sign-in; null for none.",
});

export const newConnectionBody = Type.Object(
  {
    company_id: rowId(),
    ...settings,
    client_secret: Type.Optional(settings.client_secret),
    password_login: Type.Optional(Type.Boolean()),
    trust_email: Type.Optional(trustEmail),
    is_active: Type.Optional(Type.Boolean()),
    new_users: Type.Optional(newUsersOrNull),
  },
  { ...closed, title: "SsoConnectionInput" },
);

export const connectionUpdateBody = Type.Partial(
  Type.Object(
    {
      ...settings,
      password_login: Type.Boolean(),
      trust_email: trustEmail,
      is_active: Type.Boolean(),
      new_users: newUsersOrNull,
    },
    closed,
  ),
  { ...closed, title: "SsoConnectionUpdate", examples: [{ password_login: true }] },
);
export type ConnectionUpdate = Static<typeof connectionUpdateBody>;
export type NewConnection = Static<typeof newConnectionBody>;

export const connectionsQuery = Type.Object({
  ...pageQuery(isUlid),
  company_id: Type.Optional(rowId()),
});

/** An SSO connection as the API shows it, without the client secret. */
export const connectionObject = Type.Object(
  {
    id: Type.String(),
    company_id: Type.Integer(),
    issuer: Type.String(),
    client_id: Type.String(),
    domains: Type.Array(Type.String()),
    domain_proofs: Type.Array(
      Type.Object({
        domain: Type.String(),
        record_name: Type.String({
          description: "Name of the TXT record.",
        }),
        record_value: Type.String({ description: "Value of the TXT record." }),
        proved_at: orNull(instantAnswer(), { description: "Time of the proof; null without one." }),
      }),
      { description: "The DNS records that prove the domains." },
    ),
    password_login: Type.Boolean(),
    trust_email: trustEmail,
    is_active: Type.Boolean(),
    new_users: newUsersOrNull,
    /** The redirect URI that the company registers with its identity provider. */
    redirect_uri: Type.String(),
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  {
    title: "SsoConnection",
    examples: [
      {
        domain_proofs: [
          {
            domain: "partner.example",
            record_name: "_reviewrelay.partner.example",
            record_value: "reviewrelay-connection=01JWNB9PR0ZV8X2D3F4G5H6J7K",
            proved_at: "2026-06-01T12:00:00.000+00:00",
          },
        ],
        redirect_uri:
          "https://reviews.partner.example/api/v1/auth/sso/callback/01JWNB9PR0ZV8X2D3F4G5H6J7K",
      },
    ],
  },
);

/** An SSO connection, by which users of one company sign in at its identity provider. */
export type Connection = Omit<
  RowOf<typeof connectionObject>,
  "redirectUri" | "domains" | "domainProofs" | "newUsers"
> &
  Pick<typeof ssoConnections.$inferSelect, "newUserRole" | "newUserStoreIds"> & {
    readonly domains: readonly Domain[];
  };

/** An email domain of an SSO connection. `provedAt` is the time of its proof by DNS; null without one. */
interface Domain {
  readonly domain: string;
  readonly provedAt: Date | null;
}

export const proofBody = Type.Object(
  { domain: Type.String({ minLength: 1, maxLength: DOMAIN_CHARS }) },
  { ...closed, title: "DomainProof", examples: [{ domain: "partner.example" }] },
);

/**
 * Returns the TXT record that proves that a domain belongs to the company of an SSO connection. Only the owner of the
 * domain can create it.
 */
export function proofRecord(domain: string, { id }: Pick<Connection, "id">) {
  return { name: `_reviewrelay.${domain}`, value: `reviewrelay-connection=${id}` };
}

export function showConnection(
  { newUserRole: role, newUserStoreIds: storeIds, domains, ...row }: Connection,
  redirectUri: string,
): Static<typeof connectionObject> {
  return shown(connectionObject, {
    ...row,
    redirectUri,
    domains: domains.map(({ domain }) => domain),
    domainProofs: domains.map((one) => {
      const { name: recordName, value: recordValue } = proofRecord(one.domain, row);
      return { ...one, recordName, recordValue };
    }),
    newUsers: role === null ? null : { role, ...(storeIds.length > 0 && { storeIds }) },
  });
}

export const identitiesQuery = Type.Object(pageQuery(isRowId));

export type IdentityRow = typeof ssoIdentities.$inferSelect;

export const identityObject = Type.Object(
  {
    id: Type.Integer(),
    connection_id: Type.String({
      description: "Id of the connection.",
    }),
    issuer: Type.String(),
    subject: Type.String({ description: "The `sub` of the user at the provider." }),
    linked_at: instantAnswer(),
  },
  {
    title: "SsoIdentity",
    examples: [{ connection_id: "01JWNB9PR0ZV8X2D3F4G5H6J7K", subject: "00u1a2b3c4" }],
  },
);
