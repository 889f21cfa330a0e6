import { OWN_BRAND } from "../../lib/branded-mail.ts";
import type { NewMail } from "../../outbox/mail.ts";
import type { CodeType } from "./model.ts";

interface MailContent {
  readonly subject: string;
  readonly paragraphs: readonly string[];
  /** A code or link, which the mail shows on a separate line. */
  readonly code?: string;
}

const CODE_PURPOSE: Record<CodeType, string> = {
  forgot_password: "choose a new password",
  change_password: "change your password",
  signup: "confirm your email address",
};

/**
 * Builds the mail that contains a code (contract 4.14). The subject does not contain the code, because lock screens
 * show subjects.
 */
export function codeMail(
  code: { to: string; type: CodeType; code: string; expiresAt: Date; ttlS: number },
  brand: string | null,
): NewMail {
  const minutes = Math.max(1, Math.round(code.ttlS / 60));
  const content = {
    subject: `Your code to ${CODE_PURPOSE[code.type]}`,
    paragraphs: [
      `Enter this code to ${CODE_PURPOSE[code.type]}. It works once and expires in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`,
      "If you did not request this code, ignore this email. Do not share the code with anyone; our support never asks for it.",
    ],
    code: code.code,
  };
  return { ...mailOf(code.to, content, brand), kind: "otp", expiresAt: code.expiresAt };
}

/** Builds the mail with an invitation link (contract 4.22). */
export function invitationMail(
  { to, link, expiresAt }: { to: string; link: string; expiresAt: Date },
  brand: string | null,
): NewMail {
  const content = {
    subject: "Your invitation",
    paragraphs: [
      "An account was created for you. Open this link to choose a password. The link works once and expires after seven days.",
      "If you did not expect this invitation, ignore this email. If the link has expired, ask your administrator for a new one.",
    ],
    code: link,
  };
  return { ...mailOf(to, content, brand), kind: "invitation", expiresAt };
}

/** Builds the invitation mail for users who can sign in only through an identity provider (contract 4.22). */
export function singleSignOnMail(
  { to, link }: { to: string; link: string },
  brand: string | null,
): NewMail {
  const content = {
    subject: "Your account",
    paragraphs: [
      "An account was created for you. Sign in with this email address through your company's identity provider:",
      "You do not need a password.",
    ],
    code: link,
  };
  return { ...mailOf(to, content, brand), kind: "invitation" };
}

/** Builds the mail that notifies the user of a changed password (contract 4.15). */
export function passwordChangedMail(to: string, brand: string | null): NewMail {
  const content = {
    subject: "Your password was changed",
    paragraphs: [
      "Your password was changed. All your sessions and access tokens were ended. Sign in again with the new password.",
      "If you did not change it, reset your password on the sign-in page immediately and inform your administrator.",
    ],
  };
  return { ...mailOf(to, content, brand), kind: "password_changed" };
}

/**
 * Builds a mail as plain text only. HTML styles or boundaries could look like a code, and the code must be the only
 * six digits in the mail.
 */
function mailOf(to: string, { subject, paragraphs, code }: MailContent, brand: string | null) {
  const name = brand ?? OWN_BRAND;
  const [first = "", ...rest] = paragraphs;
  const parts = [first, ...(code === undefined ? [] : [`    ${code}`]), ...rest, name];
  return { to, subject: `${name}: ${subject}`, text: `${parts.join("\n\n")}\n` };
}
