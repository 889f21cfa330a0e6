import { Type, type Static } from "@sinclair/typebox";

import { type Principal, scopeValue, type SignInMethod } from "../http/principal.ts";
import { rowId, storableText } from "../http/text.ts";
import { isoInstant } from "../lib/clock.ts";
import { companyObject, userObject } from "./model.ts";

const closed = { additionalProperties: false } as const;
const NAME_LENGTH = [1, 100] as const;
const REASON_LENGTH = [1, 500] as const;
const instant = Type.String({ format: "date-time" });
const instantOrNull = Type.Union([instant, Type.Null()]);

/** Response with the dashboard's personal access token. */
export const dashboardTokenAnswer = Type.Object(
  {
    token: Type.String(),
    created_at: instant,
    last_used_at: instantOrNull,
  },
  { title: "DashboardToken" },
);
export type DashboardTokenAnswer = Static<typeof dashboardTokenAnswer>;

export const apiTokenBody = Type.Object(
  {
    name: storableText(NAME_LENGTH),
    scopes: Type.Optional(
      Type.Array(scopeValue, {
        minItems: 1,
        uniqueItems: true,
        explain: "must be a list of different scopes, or absent",
      }),
    ),
  },
  { ...closed, title: "NewApiToken" },
);
export type ApiTokenBody = Static<typeof apiTokenBody>;

export const newApiTokenAnswer = Type.Object(
  {
    access_token: Type.String(),
    token: Type.Object({ id: Type.String(), name: Type.String(), expires_at: instant }),
  },
  { title: "ApiTokenWithSecret" },
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
  { title: "ApiToken" },
);

export function showApiToken(row: {
  jti: string;
  name: string;
  scope: string;
  issuedAt: Date;
  expiresAt: Date;
  lastUsedAt: Date | null;
}): Static<typeof apiTokenObject> {
  return {
    id: row.jti,
    name: row.name,
    scopes: row.scope.split(" "),
    created_at: isoInstant(row.issuedAt),
    expires_at: isoInstant(row.expiresAt),
    last_used_at: row.lastUsedAt === null ? null : isoInstant(row.lastUsedAt),
  };
}

export const sessionObject = Type.Object(
  {
    id: Type.String(),
    method: Type.String(),
    client_id: Type.Union([Type.String(), Type.Null()]),
    ip: Type.Union([Type.String(), Type.Null()]),
    user_agent: Type.Union([Type.String(), Type.Null()]),
    created_at: instant,
    last_used_at: instantOrNull,
    expires_at: instant,
    /** Whether the bearer token of this request belongs to the session. */
    is_current: Type.Boolean(),
  },
  { title: "Session" },
);

export function showSession(
  row: {
    id: string;
    method: SignInMethod;
    clientId: string | null;
    ip: string | null;
    userAgent: string | null;
    at: Date;
    lastUsedAt: Date | null;
    expiresAt: Date;
  },
  { familyId }: Principal,
): Static<typeof sessionObject> {
  return {
    id: row.id,
    method: row.method,
    client_id: row.clientId,
    ip: row.ip,
    user_agent: row.userAgent,
    created_at: isoInstant(row.at),
    last_used_at: row.lastUsedAt === null ? null : isoInstant(row.lastUsedAt),
    expires_at: isoInstant(row.expiresAt),
    is_current: row.id === familyId,
  };
}

export const impersonationBody = Type.Object(
  { account_id: rowId(), reason: Type.Optional(storableText(REASON_LENGTH)) },
  { ...closed, title: "NewImpersonation" },
);
export type ImpersonationBody = Static<typeof impersonationBody>;

export const impersonationAnswer = Type.Object(
  {
    access_token: Type.String(),
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
  { title: "Impersonation" },
);
export type ImpersonationAnswer = Static<typeof impersonationAnswer>;

/** A token that a company's user holds outside of a sign-in session, with its latest uses. */
export interface TeamToken {
  readonly jti: string;
  readonly kind: string;
  readonly name: string | null;
  readonly scope: string;
  readonly userId: number;
  readonly userName: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date | null;
  readonly lastUsedAt: Date | null;
  readonly uses: readonly {
    readonly route: string;
    readonly ip: string;
    readonly firstUsedAt: Date;
    readonly lastUsedAt: Date;
  }[];
}

/** Schema of an entry in the list of a partner's tokens; the entry never contains the token itself. */
export const teamTokenObject = Type.Object(
  {
    id: Type.String(),
    kind: Type.String({
      description:
        "`dashboard_pat`, `api_pat` or `impersonation`, which acts for an account's owner.",
    }),
    name: Type.Union([Type.String(), Type.Null()]),
    user_id: Type.Integer(),
    user_name: Type.String(),
    scopes: Type.Array(Type.String()),
    created_at: instant,
    expires_at: instantOrNull,
    last_used_at: instantOrNull,
    uses: Type.Array(
      Type.Object({
        route: Type.String(),
        ip: Type.String(),
        first_used_at: instant,
        last_used_at: instant,
      }),
      { description: "The ten newest pairs of route and address." },
    ),
  },
  { title: "TeamToken" },
);

export function showTeamToken(one: TeamToken): Static<typeof teamTokenObject> {
  return {
    id: one.jti,
    kind: one.kind,
    name: one.name,
    user_id: one.userId,
    user_name: one.userName,
    scopes: one.scope.split(" "),
    created_at: isoInstant(one.issuedAt),
    expires_at: one.expiresAt && isoInstant(one.expiresAt),
    last_used_at: one.lastUsedAt && isoInstant(one.lastUsedAt),
    uses: one.uses.map((use) => ({
      route: use.route,
      ip: use.ip,
      first_used_at: isoInstant(use.firstUsedAt),
      last_used_at: isoInstant(use.lastUsedAt),
    })),
  };
}
