import { FormatRegistry, type TString, Type, type Static } from "@sinclair/typebox";

import { orNull, receiving, secretText, storableText } from "../http/text.ts";
import { normalPassword } from "../lib/password.ts";

/** Allowed lengths of a new password, in characters (contract 4.17). Sign-in has the same upper limit. */
export const PASSWORD_LENGTH = { min: 8, max: 128 } as const;

/** The largest number of typed characters that NFC composes into one. */
const COMPOSED_CHARS = 4;

/**
 * Declares the schema of a password. Its length is counted after NFC normalisation, because some keyboards send an
 * accent as a character of its own, or a Hangul syllable in parts.
 */
function passwordText(min: number, explain: string): TString {
  const { max } = PASSWORD_LENGTH;
  const format = `password of ${min}`;
  FormatRegistry.Set(format, (text) => {
    const { length } = Array.from(normalPassword(text));
    // NFC turns a few single characters into two, and earlier versions counted the characters as typed. So the smaller
    // of the two counts must be within the maximum.
    return length >= min && Math.min(length, Array.from(text).length) <= max;
  });
  const typed = storableText([min, COMPOSED_CHARS * max], explain);
  // The OpenAPI description contains the length after NFC, and omits the format, which clients do not know.
  return {
    ...typed,
    format,
    characters: { ...typed["characters"], maxLength: max, format: undefined },
  };
}

const NEW_EXPLAINED = `must be text of ${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters, without NUL or broken ones`;
export const newPassword = Object.assign(passwordText(PASSWORD_LENGTH.min, NEW_EXPLAINED), {
  title: "PasswordInput",
  examples: ["correct horse battery staple"],
  description: "The password.",
});

/**
 * Maximum length of an email address. RFC 5321, 4.5.3.1.3 allows a path of 256 octets, and two of them are its angle
 * brackets.
 */
const EMAIL_MAX_LENGTH = 254;

/**
 * Schema of an email in a request. It checks only the form, because no answer may reveal whether the address belongs
 * to a user.
 */
export const email = receiving(
  Type.String({
    minLength: 3,
    maxLength: EMAIL_MAX_LENGTH,
    pattern: "^\\s*[^\\s@]+@[^\\s@]+\\s*$",
    explain: `must be an email address of at most ${EMAIL_MAX_LENGTH} characters`,
    title: "EmailAddress",
    examples: ["owner@partner.example"],
    description: "An email address.",
  }),
);

/**
 * Schema of a password that is to be verified. A text longer than any allowed password is rejected before it is
 * hashed.
 */
export const presentedPassword = passwordText(
  1,
  `must be a password of at most ${PASSWORD_LENGTH.max} characters`,
);

/**
 * Body of `POST /login`. It ignores unknown fields, unlike every other body (contract 2.7). It needs
 * `additionalProperties: true`, because Elysia rejects unknown fields of every object schema without this option.
 */
export const loginBody = Type.Object(
  {
    email: Type.String({
      minLength: 1,
      maxLength: EMAIL_MAX_LENGTH,
      pattern: "\\S",
      explain: `must be an email address of at most ${EMAIL_MAX_LENGTH} characters`,
    }),
    password: presentedPassword,
    // The field `rememberMe` is accepted for older clients; the lifetime of a token does not depend on it.
    rememberMe: Type.Optional(Type.Boolean()),
  },
  { title: "Login", additionalProperties: true },
);
export type LoginBody = Static<typeof loginBody>;

export const userObject = Type.Object(
  {
    id: Type.Integer(),
    email: Type.String(),
    name: Type.String(),
    role: Type.String(),
    company_id: Type.Integer(),
    store_ids: Type.Array(Type.Integer()),
  },
  { title: "User", examples: [{ id: 31, store_ids: [] }], description: "A user." },
);
export const companyObject = Type.Object(
  {
    id: Type.Integer(),
    type: Type.Union([Type.Literal("platform"), Type.Literal("partner"), Type.Literal("account")]),
    name: Type.String(),
    partner_id: orNull(Type.Integer()),
  },
  {
    title: "Company",
    examples: [{ id: 7, type: "partner", name: "Stellar Partners", partner_id: null }],
    description: "The company that the user belongs to.",
  },
);

export const planObject = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    features: Type.Array(Type.String()),
    /** Number of accounts with the plan. Only the routes of operators show it. */
    accounts: Type.Optional(Type.Integer({ description: "Accounts with it." })),
  },
  {
    title: "Plan",
    examples: [{ id: 4, name: "Growth", features: ["webhooks"] }],
    description: "The plan of an account.",
  },
);
export const whiteLabelObject = Type.Object(
  {
    enabled: Type.Boolean(),
    brand_name: orNull(Type.String()),
    domain: orNull(Type.String()),
  },
  { title: "WhiteLabel", description: "Branding that replaces the platform's own." },
);

export const themeObject = Type.Object(
  { primary_color: Type.String(), logo_url: orNull(Type.String()) },
  { title: "Theme", description: "Branding of the pages." },
);

/** The user, company and branding that belong to a token (contract 4.5). */
const sessionContext = {
  user: userObject,
  company: companyObject,
  theme: themeObject,
  white_label: whiteLabelObject,
  plan: Type.Optional(planObject),
};
const sessionContextObject = Type.Object(sessionContext, { title: "SessionContext" });
export type SessionContext = Static<typeof sessionContextObject>;

const freshToken = {
  token: secretText(),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer(),
};

/** Response to a password reset: the login response without `location_count` (contract 4.15). */
export const resetAnswer = Type.Object(
  { ...freshToken, ...sessionContext },
  { title: "PasswordSet", extends: sessionContextObject },
);
export type ResetAnswer = Static<typeof resetAnswer>;

export const loginAnswer = Type.Object(
  { ...freshToken, ...sessionContext, location_count: Type.Integer() },
  { title: "SignedIn", extends: resetAnswer },
);
export type LoginAnswer = Static<typeof loginAnswer>;

export const verifyTokenAnswer = Type.Object(
  {
    ...sessionContext,
    /** The person acting as the user; absent if the token belongs to the user. */
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
  },
  {
    title: "VerifiedToken",
    examples: [
      {
        impersonation: {
          impersonator: {
            id: 2,
            email: "support@platform.example",
            name: "Robin Okafor",
            company_id: 1,
          },
        },
      },
    ],
    extends: sessionContextObject,
  },
);
export type VerifyTokenAnswer = Static<typeof verifyTokenAnswer>;

export const messageAnswer = Type.Object({ message: Type.String() }, { title: "Message" });
