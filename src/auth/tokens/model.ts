import { Type, type Static } from "@sinclair/typebox";

import { listSchema } from "../../http/list.ts";
import { type Principal, scopeList } from "../../http/principal.ts";
import { type RowOf, shown } from "../../http/shown.ts";
import {
  instantAnswer,
  orNull,
  rowId,
  secretText,
  shortName,
  storableText,
} from "../../http/text.ts";
import { companyObject, userObject } from "../model.ts";

const closed = { additionalProperties: false } as const;
const REASON_LENGTH = [1, 500] as const;
const instant = instantAnswer();
const instantOrNull = orNull(instant);

/** Response with the dashboard's personal access token. */
export const dashboardTokenAnswer = Type.Object(
  {
    token: secretText(),
    created_at: instant,
    last_used_at: instantOrNull,
  },
  { title: "DashboardToken" },
);
export type DashboardTokenAnswer = Static<typeof dashboardTokenAnswer>;

export const apiTokenBody = Type.Object(
  {
    name: shortName,
    scopes: Type.Optional(scopeList),
  },
  {
    ...closed,
    title: "ApiTokenInput",
    examples: [{ name: "Nightly export", scopes: ["webhooks:read"] }],
  },
);
export type ApiTokenBody = Static<typeof apiTokenBody>;

export const newApiTokenAnswer = Type.Object(
  {
    access_token: secretText(),
    token: Type.Object({ id: Type.String(), name: Type.String(), expires_at: instant }),
  },
  {
    title: "ApiTokenWithSecret",
    examples: [
      {
        token: {
          id: "01JWNB9PR0ZV8X2D3F4G5H6J7K",
          name: "Nightly export",
          expires_at: "2026-06-02T12:00:00.000+00:00",
        },
      },
    ],
  },
);
export type NewApiTokenAnswer = Static<typeof newApiTokenAnswer>;

export const apiTokenObject = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    created_at: instant,
    expires_at: instant,
    last_used_at: instantOrNull,
  },
  { title: "ApiToken", examples: [{ name: "Nightly export" }] },
);

/** Schema of the list of a user's API tokens. The list also says whether the user has a dashboard token. */
export const apiTokenList = Type.Object(
  {
    ...listSchema(apiTokenObject).properties,
    dashboard_token: orNull(
      Type.Object(
        { created_at: instant, last_used_at: instantOrNull },
        { description: "The token at `/account/api-token`, without its value; null without one." },
      ),
    ),
  },
  { title: "ApiTokenList", extends: listSchema(apiTokenObject) },
);

interface StoredToken {
  readonly jti: string;
  readonly scope: string;
  readonly issuedAt: Date;
}

/** Returns the fields of a token whose names in the API differ from those of their columns. */
const shownToken = ({ jti, scope, issuedAt }: StoredToken) => ({
  id: jti,
  scopes: scope.split(" "),
  createdAt: issuedAt,
});

export function showApiToken(
  row: StoredToken & Pick<RowOf<typeof apiTokenObject>, "name" | "expiresAt" | "lastUsedAt">,
): Static<typeof apiTokenObject> {
  return shown(apiTokenObject, { ...row, ...shownToken(row) });
}

export const sessionObject = Type.Object(
  {
    id: Type.String(),
    method: Type.String(),
    client_id: orNull(Type.String()),
    ip: orNull(Type.String()),
    user_agent: orNull(Type.String()),
    created_at: instant,
    last_used_at: instantOrNull,
    expires_at: instant,
    factor_at: instantOrNull,
    /** Whether the bearer token of this request belongs to the session. */
    is_current: Type.Boolean(),
  },
  { title: "Session", examples: [{ method: "password", client_id: null }] },
);

export function showSession(
  row: Omit<RowOf<typeof sessionObject>, "createdAt" | "isCurrent"> & { readonly at: Date },
  { familyId }: Principal,
): Static<typeof sessionObject> {
  return shown(sessionObject, { ...row, createdAt: row.at, isCurrent: row.id === familyId });
}

/** Schema of an item in the list of sign-ins of a company's users. */
export const teamSessionObject = Type.Object(
  { ...sessionObject.properties, user_id: Type.Integer(), user_name: Type.String() },
  { title: "TeamSession", extends: sessionObject },
);

export function showTeamSession(
  row: Omit<RowOf<typeof teamSessionObject>, "createdAt" | "isCurrent"> & { readonly at: Date },
  { familyId }: Principal,
): Static<typeof teamSessionObject> {
  return shown(teamSessionObject, { ...row, createdAt: row.at, isCurrent: row.id === familyId });
}

export const impersonationBody = Type.Object(
  { account_id: rowId(), reason: Type.Optional(storableText(REASON_LENGTH)) },
  { ...closed, title: "ImpersonationInput" },
);
export type ImpersonationBody = Static<typeof impersonationBody>;

export const impersonationAnswer = Type.Object(
  {
    access_token: secretText(),
    token_type: Type.Literal("Bearer"),
    expires_in: Type.Integer(),
    /** The account owner as whom the token acts, and the owner's account. */
    user: userObject,
    company: companyObject,
    acting_as: Type.Object({
      user_id: Type.Integer(),
      account_id: Type.Integer(),
      impersonator_id: Type.Integer(),
    }),
  },
  {
    title: "Impersonation",
    examples: [
      {
        user: {
          id: 32,
          email: "sam@harbour.example",
          name: "Sam Kaur",
          role: "account_owner",
          company_id: 12,
          store_ids: [],
        },
        company: { id: 12, type: "account", name: "Harbour Café", partner_id: 7 },
        acting_as: { user_id: 32, account_id: 12, impersonator_id: 31 },
      },
    ],
  },
);
export type ImpersonationAnswer = Static<typeof impersonationAnswer>;

/** Schema of an item in the list of the tokens of a company's users; the item never contains the token itself. */
export const teamTokenObject = Type.Object(
  {
    id: Type.String(),
    kind: Type.String({
      description:
        "`dashboard_pat`, `api_pat` or `impersonation`, which acts for an account's owner.",
    }),
    name: orNull(Type.String()),
    user_id: Type.Integer(),
    user_name: Type.String(),
    scopes: Type.Array(Type.String()),
    created_at: instant,
    expires_at: instantOrNull,
    last_used_at: instantOrNull,
    uses: Type.Array(
      Type.Object({
        route: Type.String({ examples: ["GET /partner/webhooks"] }),
        ip: Type.String(),
        first_used_at: instant,
        last_used_at: instant,
      }),
      { description: "The ten newest pairs of route and address." },
    ),
  },
  { title: "TeamToken", examples: [{ kind: "api_pat", name: "Nightly export" }] },
);

/** A token that a company's user holds outside of a sign-in session, with its latest uses. */
export type TeamToken = StoredToken &
  Omit<RowOf<typeof teamTokenObject>, keyof ReturnType<typeof shownToken>>;

export function showTeamToken(one: TeamToken): Static<typeof teamTokenObject> {
  return shown(teamTokenObject, { ...one, ...shownToken(one) });
}
