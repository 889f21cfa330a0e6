import { escapeHtml } from "../lib/html.ts";
import type { NewMail } from "../outbox/mail.ts";
import type { CodeType } from "./password-model.ts";

/** The sender's name where the tenant has none of its own. */
const OWN_BRAND = "ReviewRelay";

interface MailContent {
  readonly subject: string;
  readonly paragraphs: readonly string[];
  /** Shown large, on a line of its own. */
  readonly code?: string;
}

const PURPOSE: Record<CodeType, string> = {
  forgot_password: "choose a new password",
  change_password: "change your password",
  signup: "confirm your email address",
};

/** decisions.md 2, email OTP. The subject is free of the code: lock screens show it. */
export function codeMail(
  code: { to: string; type: CodeType; code: string; expiresAt: Date; ttlS: number },
  brand: string | null,
): NewMail {
  const minutes = Math.max(1, Math.round(code.ttlS / 60));
  const content = {
    subject: `Your code to ${PURPOSE[code.type]}`,
    paragraphs: [
      `Enter this code to ${PURPOSE[code.type]}. It works once, for ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`,
      "If you did not ask for it, ignore this mail: without the code nothing changes. Nobody of us will ever ask you for it.",
    ],
    code: code.code,
  };
  return { ...mailOf(code.to, content, brand), kind: "otp", expiresAt: code.expiresAt };
}

/** decisions.md 2, `POST /reset-password`: the user is told. */
export function passwordChangedMail(to: string, brand: string | null): NewMail {
  const content = {
    subject: "Your password was changed",
    paragraphs: [
      "Your password was just changed. Every sign-in and every access token that you had has ended; sign in again with the new password.",
      "If it was not you, ask for a new password at once on the sign-in page, and tell your administrator.",
    ],
  };
  return { ...mailOf(to, content, brand), kind: "password_changed" };
}

function mailOf(to: string, content: MailContent, brand: string | null) {
  const name = brand ?? OWN_BRAND;
  const { paragraphs, code } = content;
  const [first = "", ...rest] = paragraphs;
  const subject = `${name}: ${content.subject}`;
  const text = [first, ...(code === undefined ? [] : [`    ${code}`]), ...rest, name].join("\n\n");
  return { to, subject, text: `${text}\n`, html: htmlOf(content, name) };
}

function htmlOf({ subject, paragraphs, code }: MailContent, name: string): string {
  const [first = "", ...rest] = paragraphs.map((text) => `<p>${escapeHtml(text)}</p>`);
  const large = `<p style="font-size:28px;letter-spacing:6px;font-family:monospace">${code}</p>`;
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
    `<body style="font-family:sans-serif;max-width:36em">`,
    first,
    ...(code === undefined ? [] : [large]),
    ...rest,
    `<p>${escapeHtml(name)}</p></body></html>`,
  ].join("\n");
}
