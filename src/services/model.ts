import { type Static, type TSchema, Type } from "@sinclair/typebox";

import { literals, SERVICE_SCOPES } from "../http/principal.ts";
import { pageQuery } from "../http/list.ts";
import { isRowId } from "../http/ids.ts";
import type { RowOf } from "../http/shown.ts";
import { instantAnswer, instantText, orNull, rowId, secretText, shortName } from "../http/text.ts";

const closed = { additionalProperties: false } as const;
const MAX_PARTNERS = 1_000;

// ------------------------------------------------------------------------------------------------ services

const scopes = Type.Array(literals(SERVICE_SCOPES), {
  title: "ServiceScopes",
  minItems: 1,
  uniqueItems: true,
  description: "What the service may do.",
  examples: [["actions:write"]],
  explain: `must be different scopes of ${SERVICE_SCOPES.join(", ")}`,
});
const partnerIds = orNull(
  Type.Array(rowId(), { minItems: 1, maxItems: MAX_PARTNERS, uniqueItems: true }),
  {
    title: "ServicePartners",
    explain: `must be 1 to ${MAX_PARTNERS} different ids of partners, or null for all`,
    description: "Null for all partners.",
  },
);
const settings = { name: shortName, scopes, partner_ids: partnerIds };

export const ServiceBody = Type.Object(
  { ...settings, partner_ids: Type.Optional(partnerIds) },
  {
    ...closed,
    title: "ServiceInput",
    examples: [{ name: "Reviews engine", scopes: ["actions:write"], partner_ids: [7] }],
  },
);
export type NewService = Static<typeof ServiceBody>;

export const ServiceChanges = Type.Partial(Type.Object(settings), {
  ...closed,
  title: "ServiceChanges",
  examples: [{ partner_ids: [7] }],
});
export type ServiceUpdate = Static<typeof ServiceChanges>;

export const serviceQuery = Type.Object(pageQuery(isRowId));

const token = {
  id: Type.String(),
  name: Type.String(),
  created_at: instantAnswer(),
  expires_at: instantAnswer(),
  last_used_at: orNull(instantAnswer()),
};
export const ServiceTokenObject = Type.Object(token, {
  title: "ServiceToken",
  examples: [{ name: "Production", expires_at: "2027-06-01T12:00:00.000+00:00" }],
});

/** A service with its live tokens, of which it has few (contract 10.7). */
export const ServiceObject = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    scopes: Type.Array(Type.String(), { examples: [["actions:write"]] }),
    partner_ids: orNull(Type.Array(Type.Integer()), {
      description: "Null for all partners.",
    }),
    tokens: Type.Array(ServiceTokenObject, { description: "Live tokens." }),
    created_at: instantAnswer(),
    updated_at: instantAnswer(),
  },
  {
    title: "Service",
    examples: [{ id: 5, name: "Reviews engine", partner_ids: [7], tokens: [] }],
    description: "A service of the platform.",
  },
);
export type Service = Omit<RowOf<typeof ServiceObject>, "tokens">;

// ------------------------------------------------------------------------------------------------ tokens

export const ServiceTokenBody = Type.Object(
  {
    name: shortName,
    expires_at: Object.assign(instantText(), {
      description: "At most 400 days from now.",
    }),
  },
  {
    ...closed,
    title: "ServiceTokenInput",
    examples: [{ name: "Production", expires_at: "2027-06-01T12:00:00.000+00:00" }],
  },
);

export const ServiceTokenWithSecret = Type.Object(
  { ...token, access_token: secretText({ description: "The token, shown once." }) },
  { title: "ServiceTokenWithSecret", extends: ServiceTokenObject },
);

// ------------------------------------------------------------------------------------------------ introspection

export const IntrospectBody = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 16_000 }) },
  { ...closed, title: "TokenToIntrospect" },
);

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
export const IntrospectAnswer = Type.Object(
  {
    active: Type.Boolean({
      description: "Whether the token is valid now. If not, the other fields are absent.",
    }),
    kind: optional(Type.String()),
    user_id: optional(Type.Integer()),
    role: optional(Type.String()),
    company_id: optional(Type.Integer()),
    partner_id: optional(orNull(Type.Integer())),
    account_id: optional(orNull(Type.Integer())),
    store_ids: optional(orNull(Type.Array(Type.Integer()))),
    impersonator_id: optional(orNull(Type.Integer())),
    client_id: optional(orNull(Type.String())),
    scope: optional(Type.String()),
    expires_at: optional(orNull(instantAnswer())),
  },
  {
    title: "IntrospectedToken",
    examples: [
      {
        active: true,
        kind: "api_pat",
        user_id: 31,
        role: "partner_owner",
        company_id: 7,
        partner_id: 7,
        account_id: null,
        store_ids: null,
        impersonator_id: null,
        client_id: null,
        scope: "webhooks:read",
        expires_at: "2026-06-02T12:00:00.000+00:00",
      },
    ],
  },
);
