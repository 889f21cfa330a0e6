import { type Static, type TSchema, Type } from "@sinclair/typebox";

import { email } from "../auth/model.ts";
import { literals, scopeList } from "../http/principal.ts";
import { instantText, orNull, rowId, shortName, storableText, ulidText } from "../http/text.ts";
import { CLIENT_ID_PATTERN, GRANT_TYPES } from "../oauth/model.ts";
import { SUBSCRIBABLE_EVENTS } from "../outbox/event.ts";
import { PROVIDER_SLUG, ReportedReview } from "../intake/provider-model.ts";
import { FLAG_STATUSES } from "../reviews/events.ts";
import { FlagBody, NoteBody, ResponseBody } from "../reviews/model.ts";
import { displayName, externalId, PartnerBody, UserBody } from "../tenants/model.ts";
import { PlanBody } from "../tenants/store-model.ts";
import { NewSubscriptionBody } from "../webhooks/model.ts";

/*
 * The lines of an import and an export (contract 10.9): each is a JSON object that describes one record, and its field
 * `kind` is a key of `LINES`. A field that refers to another record contains the id of that record as a number, or its
 * external id as text.
 */

const MAX_HASH_CHARS = 500;
/** Minimum and maximum length of imported secrets of subscriptions and review sites. */
const SECRET_CHARS = [8, 256] as const;
/**
 * Minimum and maximum length of imported secrets of OAuth clients. They must be longer than other secrets, because a
 * fast hash of them is stored (`hashSecret`).
 */
const CLIENT_SECRET_CHARS = [16, 256] as const;

const closed = { additionalProperties: false } as const;
const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const MAX_ID = rowId().maximum;
const id = optional(
  Object.assign(rowId(), {
    explain: `must be a whole number from 1 to ${MAX_ID}; a record with another one needs external_id`,
  }),
);
const reference = Type.Union([rowId(), externalId], {
  explain: "must be the id of a record, or its external id as text",
});
const identity = { id, external_id: optional(externalId) };
const secret = storableText(SECRET_CHARS);
const axis = Type.Object(
  { connected: Type.Boolean(), error_code: orNull(storableText([1, 64])) },
  closed,
);
const { name, primary_color, logo_url, white_label } = PartnerBody.properties;
const company = {
  ...identity,
  name,
  is_active: optional(Type.Boolean()),
  primary_color,
  logo_url,
  created_at: optional(instantText()),
};

export const LINES = {
  plan: Type.Object({ id, ...PlanBody.properties }, closed),
  partner: Type.Object({ ...company, white_label }, closed),
  account: Type.Object({ ...company, partner_id: reference, plan_id: reference }, closed),
  store: Type.Object({ ...identity, account_id: reference, name: displayName }, closed),
  review_site: Type.Object(
    {
      id,
      slug: Type.String({ pattern: PROVIDER_SLUG }),
      name: displayName,
      secret: optional(secret),
    },
    closed,
  ),
  connection: Type.Object(
    {
      ...identity,
      store_id: reference,
      review_site: Type.String({ pattern: PROVIDER_SLUG }),
      pull: optional(axis),
      post: optional(axis),
    },
    closed,
  ),
  user: Type.Object(
    {
      ...identity,
      partner_id: optional(reference),
      account_id: optional(reference),
      email,
      name: displayName,
      role: UserBody.properties.role,
      store_ids: optional(Type.Array(reference, { maxItems: 500, uniqueItems: true })),
      password_hash: optional(Type.String({ maxLength: MAX_HASH_CHARS })),
      is_active: optional(Type.Boolean()),
      created_at: optional(instantText()),
    },
    closed,
  ),
  oauth_client: Type.Object(
    {
      client_id: Type.String({ pattern: CLIENT_ID_PATTERN }),
      partner_id: optional(reference),
      name: shortName,
      client_secret: optional(storableText(CLIENT_SECRET_CHARS)),
      secret_hash: optional(Type.String({ pattern: "^sha256:[0-9a-f]{64}$" })),
      redirect_uris: optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 20 })),
      scopes: scopeList,
      grant_types: optional(Type.Array(literals(GRANT_TYPES), { minItems: 1, uniqueItems: true })),
      first_party: optional(Type.Boolean()),
      require_pkce: optional(Type.Boolean()),
      created_by: optional(Type.String({ pattern: CLIENT_ID_PATTERN })),
      created_at: optional(instantText()),
    },
    closed,
  ),
  subscription: Type.Object(
    {
      id: optional(ulidText()),
      partner_id: reference,
      ...NewSubscriptionBody.properties,
      events: optional(
        orNull(Type.Array(literals(SUBSCRIBABLE_EVENTS), { minItems: 1, uniqueItems: true })),
      ),
      secret,
      previous_secret: optional(secret),
      previous_secret_expires_at: optional(instantText()),
      is_active: optional(Type.Boolean()),
      disabled_at: optional(instantText()),
      disabled_reason: optional(storableText([1, 64])),
      disabled_note: optional(storableText([1, 500])),
      begins_at: optional(instantText()),
      created_at: optional(instantText()),
    },
    closed,
  ),
  review: Type.Object(
    {
      ...identity,
      connection_id: reference,
      ...ReportedReview.properties,
      reviewer: optional(ReportedReview.properties.reviewer),
      removed_at: optional(instantText()),
      erased_at: optional(instantText()),
      assigned_user_id: optional(reference),
      created_at: optional(instantText()),
      updated_at: optional(instantText()),
    },
    closed,
  ),
  response: Type.Object(
    {
      review_id: reference,
      body: ResponseBody.properties.body,
      user_id: optional(reference),
      responded_at: instantText(),
    },
    closed,
  ),
  flag: Type.Object(
    {
      review_id: reference,
      status: literals(FLAG_STATUSES),
      reason: optional(FlagBody.properties.reason),
    },
    closed,
  ),
  note: Type.Object(
    {
      external_id: optional(externalId),
      review_id: reference,
      user_id: reference,
      body: NoteBody.properties.body,
      created_at: instantText(),
    },
    closed,
  ),
  history: Type.Object(
    {
      event_id: optional(ulidText()),
      external_id: optional(externalId),
      event: literals(SUBSCRIBABLE_EVENTS),
      review_id: optional(reference),
      connection_id: optional(reference),
      actor: Type.Object(
        {
          type: literals(["user", "system"]),
          user_id: optional(reference),
          name: optional(storableText([1, 200])),
        },
        closed,
      ),
      rate: optional(Type.Integer({ minimum: 1, maximum: 5 })),
      reviewer: optional(ReportedReview.properties.reviewer),
      error_code: optional(storableText([1, 64])),
      metadata: optional(Type.Record(Type.String(), Type.Unknown())),
      occurred_at: instantText(),
    },
    closed,
  ),
} as const;

export type Kind = keyof typeof LINES;
type Lines = { readonly [K in Kind]: Static<(typeof LINES)[K]> };
export type LineOf<K extends Kind> = Lines[K];

/** All kinds, in the order of an export: each after the kinds that it refers to. */
// The cast is safe, but necessary, because the type of `Object.keys` does not include the keys.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
export const KINDS = Object.keys(LINES) as readonly Kind[];
