import { type Static, Type } from "@sinclair/typebox";
import { dictionary } from "@zxcvbn-ts/language-common";

import { orNull, secretText } from "../../http/text.ts";
import { normalPassword } from "../../lib/password.ts";
import {
  companyObject,
  email,
  newPassword,
  PASSWORD_LENGTH,
  presentedPassword,
  themeObject,
  whiteLabelObject,
} from "../model.ts";

const codeType = Type.Union([
  Type.Literal("forgot_password"),
  Type.Literal("change_password"),
  Type.Literal("signup"),
]);
export type CodeType = Static<typeof codeType>;
export const CODE_TYPES = codeType.anyOf.map((one) => one.const);

const closed = { additionalProperties: false } as const;

export const discoverBody = Type.Object({ email }, { ...closed, title: "Discovery" });

export const discoverAnswer = Type.Object(
  {
    methods: Type.Array(Type.Union([Type.Literal("password"), Type.Literal("sso")])),
    password: Type.Boolean({ description: "Whether passwords are accepted." }),
    sso: Type.Boolean(),
    /**
     * The URL that the browser opens to sign in through the identity provider; null if no identity
     * provider serves the email's domain.
     */
    sso_url: Type.Union([Type.String(), Type.Null()]),
  },
  { title: "SignInMethods" },
);
export type DiscoverAnswer = Static<typeof discoverAnswer>;

export const resendBody = Type.Object(
  { email, type: codeType },
  { ...closed, title: "CodeRequest" },
);
export type ResendBody = Static<typeof resendBody>;

/**
 * Maximum length of a code in a request. A code has six digits; a longer text up to this limit is treated as a wrong
 * code.
 */
const OTP_MAX_LENGTH = 64;
export const verifyBody = Type.Object(
  {
    email,
    otp: Type.String({ minLength: 1, maxLength: OTP_MAX_LENGTH }),
    type: codeType,
  },
  { ...closed, title: "CodeCheck" },
);
export type VerifyBody = Static<typeof verifyBody>;

export const verifyCodeAnswer = Type.Union(
  [
    Type.Object({
      token: secretText(),
      token_type: Type.Literal("Bearer"),
      expires_in: Type.Integer(),
    }),
    // The response for a signup, where no user exists yet.
    Type.Object({ verification_token: secretText() }),
  ],
  { title: "VerifiedCode" },
);
export type VerifyCodeAnswer = Static<typeof verifyCodeAnswer>;

export const resetBody = Type.Object(
  { password: newPassword },
  { ...closed, title: "PasswordReset" },
);

/**
 * Maximum length of an invitation code in a request. The code in a link has 64 characters; other text up to this limit
 * is treated as a wrong code.
 */
const INVITATION_MAX_LENGTH = 128;
const invitationCode = Type.String({ minLength: 1, maxLength: INVITATION_MAX_LENGTH });
export const acceptBody = Type.Object(
  { code: invitationCode, password: newPassword },
  { ...closed, title: "InvitationAcceptance" },
);
export type AcceptBody = Static<typeof acceptBody>;

export const previewBody = Type.Object({ code: invitationCode }, closed);
export const shownInvitation = Type.Object(
  {
    role: Type.String(),
    company: companyObject,
    /** The name of the inviter; null for an operator. */
    invited_by: orNull(Type.String()),
    theme: themeObject,
    white_label: whiteLabelObject,
  },
  { title: "Invitation" },
);
export type ShownInvitation = Static<typeof shownInvitation>;

export const changeBody = Type.Object(
  {
    current_password: presentedPassword,
  },
  {
    ...closed,
    title: "PasswordChange",
    examples: [{ current_password: "correct horse battery staple" }],
  },
);

/**
 * The most frequent leaked passwords (contract 4.17); about 18,000 of them have at least 8 characters. New passwords
 * are compared with them regardless of case. The zxcvbn-ts project maintains the list.
 */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(dictionary["passwords-common"]);

export function isCommonPassword(password: string): boolean {
  return COMMON_PASSWORDS.has(password.toLowerCase());
}

/** Minimum length of a context word. Shorter words are ignored, because they occur inside other words by chance. */
const CONTEXT_WORD_MIN = 4;

/**
 * Returns the validation error of a new password that is too short without the words of its context (contract 4.17).
 * The context, `names`, consists of the email and of the names of the user and the companies. A passphrase that
 * contains one of these words is accepted if it is long enough without the word.
 */
export function contextError(
  password: string,
  names: readonly (string | null | undefined)[],
): string | undefined {
  const words = ["ReviewRelay", ...names]
    .flatMap(
      (name) =>
        name
          ?.normalize("NFC")
          .toLowerCase()
          .split(/[^\p{L}\p{M}\p{N}]+/u) ?? [],
    )
    .filter((word) => word.length >= CONTEXT_WORD_MIN)
    // Longer words are removed first, so that a shorter word inside them does not split them.
    .toSorted((a, b) => b.length - a.length);
  const lower = normalPassword(password).toLowerCase();
  const rest = words.reduce((text, word) => text.replaceAll(word, ""), lower);
  if (rest === lower || Array.from(rest).length >= PASSWORD_LENGTH.min) return undefined;
  return `must have ${PASSWORD_LENGTH.min} characters besides the email and the names of the user, the company and the service`;
}

/** Returns the validation error of a common password, because a schema cannot express this rule. */
export function passwordError(password: string): string | undefined {
  return isCommonPassword(normalPassword(password)) ? "is too common and easy to guess" : undefined;
}
