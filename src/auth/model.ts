import { Type, type Static } from "@sinclair/typebox";

import { storableText } from "../http/text.ts";

export type Role =
  | "super_admin"
  | "partner_owner"
  | "partner_admin"
  | "account_owner"
  | "account_user"
  | "location_user";

/** decisions.md 2, `/oauth/token`. `*` stands for all of them; `password:reset` is never part of `*`. */
export const SCOPES = [
  "*",
  "reviews:read",
  "reviews:write",
  "webhooks:read",
  "webhooks:write",
  "clients:write",
  "impersonate",
] as const;
export type Scope = (typeof SCOPES)[number];

export type TokenKind =
  | "access"
  | "refresh"
  | "dashboard_pat"
  | "api_pat"
  | "impersonation"
  | "password_reset";

/** How a sign-in came about: the family of tokens that stems from it (decisions.md 2). */
export type SignInMethod =
  | "login"
  | "password_grant"
  | "authorization_code"
  | "sso"
  | "password_reset"
  | "impersonation";

/** Who a verified bearer token acts as: every field from live rows, none from its claims (decisions.md 2, revocation). */
export interface Principal {
  readonly userId: number;
  readonly userName: string;
  readonly role: Role;
  readonly companyId: number;
  readonly companyType: "platform" | "partner" | "account";
  /** The tenant: the partner itself, or the partner of the account; null for the platform. */
  readonly partnerId: number | null;
  /** Null above an account. */
  readonly accountId: number | null;
  /** The stores of a location user; null where a user sees every store of the account. */
  readonly storeIds: readonly number[] | null;
  readonly scopes: ReadonlySet<string>;
  readonly tokenKind: TokenKind;
  readonly jti: string;
  readonly familyId: string | null;
  /** How the family began; null for tokens without one. */
  readonly signInMethod: SignInMethod | null;
  /** Null where the token was issued to the service's own pages. */
  readonly clientId: string | null;
  /** Whether a partner or another third party holds the token, not the service or a first-party client. */
  readonly isThirdParty: boolean;
  readonly impersonatorId: number | null;
}

/** decisions.md 2, passwords; login takes no shorter limit than a password may be set with. */
export const PASSWORD_LENGTH = { min: 8, max: 128 } as const;

/** RFC 5321, 4.5.3.1.3: a path of 256 octets with its angle brackets. */
const EMAIL_MAX_LENGTH = 254;

/** A password that somebody says is theirs: what could never have been set is refused before any work. */
export const presentedPassword = storableText(
  [1, PASSWORD_LENGTH.max],
  `must be a password of at most ${PASSWORD_LENGTH.max} characters`,
);

/** Unknown fields are ignored here, and only here (decisions.md 1). */
export const loginBody = Type.Object({
  email: Type.String({
    minLength: 1,
    maxLength: EMAIL_MAX_LENGTH,
    pattern: "\\S",
    explain: `must be an email address of at most ${EMAIL_MAX_LENGTH} characters`,
  }),
  password: presentedPassword,
  // Taken for the sake of older callers; the life of a token never depends on it.
  rememberMe: Type.Optional(Type.Boolean()),
});
export type LoginBody = Static<typeof loginBody>;

const nullable = <T extends ReturnType<typeof Type.Integer> | ReturnType<typeof Type.String>>(
  type: T,
) => Type.Union([type, Type.Null()]);

export const userObject = Type.Object({
  id: Type.Integer(),
  email: Type.String(),
  name: Type.String(),
  role: Type.String(),
  company_id: Type.Integer(),
  store_ids: Type.Array(Type.Integer()),
});
export const companyObject = Type.Object({
  id: Type.Integer(),
  type: Type.Union([Type.Literal("platform"), Type.Literal("partner"), Type.Literal("account")]),
  name: Type.String(),
  partner_id: nullable(Type.Integer()),
});

/** interface.md 2.2, shaped by decisions.md 2: whom a token speaks for. */
const sessionContext = {
  user: userObject,
  company: companyObject,
  theme: Type.Object({ primary_color: Type.String(), logo_url: nullable(Type.String()) }),
  white_label: Type.Object({
    enabled: Type.Boolean(),
    brand_name: nullable(Type.String()),
    domain: nullable(Type.String()),
  }),
  plan: Type.Optional(
    Type.Object({ id: Type.Integer(), name: Type.String(), features: Type.Array(Type.String()) }),
  ),
};
const sessionContextObject = Type.Object(sessionContext);
export type SessionContext = Static<typeof sessionContextObject>;

const freshToken = {
  token: Type.String(),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer(),
};

export const loginAnswer = Type.Object({
  ...freshToken,
  ...sessionContext,
  location_count: Type.Integer(),
});
export type LoginAnswer = Static<typeof loginAnswer>;

export const verifyTokenAnswer = Type.Object({
  ...sessionContext,
  /** Only when the token acts for somebody else: who is behind it. */
  impersonation: Type.Optional(
    Type.Object({
      impersonator: Type.Object({
        id: Type.Integer(),
        email: Type.String(),
        name: Type.String(),
        company_id: Type.Integer(),
      }),
    }),
  ),
});
export type VerifyTokenAnswer = Static<typeof verifyTokenAnswer>;

export const messageAnswer = Type.Object({ message: Type.String() });
